// What happens in the browser at an event of the page, by its name; `asked` has the text.
(event, text) => {
  // The area of results knows the text that it is of, and its state: asked, current, or old, for another text.
  const results = document.querySelector('.page-results');
  const compare = () => {
    const written = document.querySelector('#text textarea').value;
    results.dataset.state = written === results.asked ? 'current' : 'old';
  };
  // Scrolls to an element whose top is out of sight, with some of what is above it.
  const show = (selector) => {
    const top = document.querySelector(selector).getBoundingClientRect().top;
    if (top < 0 || top > innerHeight / 2) scrollBy({top: top - innerHeight / 4, behavior: 'smooth'});
  };
  if (event === 'asked') {  // to the progress bar; no earlier result is behind it
    results.asked = text;
    results.dataset.state = 'asked';
    results.querySelectorAll('[aria-current]').forEach((one) => one.removeAttribute('aria-current'));
    show('#drawing');
  } else if (event === 'found') {  // the page may be long enough to scroll only now
    compare();
    show('#drawing');
  } else if (event === 'explained') {
    show('#explanation');
  } else if (event === 'written') {
    if ((results.dataset.state ?? 'asked') !== 'asked') compare();
  } else if (event === 'opened') {
    // Gradio leaves the list of models open, over what is below it, when the Tab key moves on.
    document.addEventListener('keydown', (pressed) => {
      if (pressed.key !== 'Tab' || !pressed.target.matches('#model input')) return;
      pressed.target.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
    });
  }
}
