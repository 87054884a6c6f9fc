function choose(event) {
  const chosen = event.target.closest('[data-start]');
  if (!chosen) return;
  event.preventDefault();
  const {start, end} = chosen.dataset;
  const page = element.closest('.gradio-container');
  page.querySelectorAll('[data-start][aria-current]').forEach((one) => one.removeAttribute('aria-current'));
  page.querySelectorAll(`[data-start="${start}"][data-end="${end}"]`)
    .forEach((one) => one.setAttribute('aria-current', 'true'));
  trigger('explain', {start: Number(start), end: Number(end)});
}
element.addEventListener('click', choose);

// The Tab key stops once in the drawing and once in the table; arrows move on from there.
const stops = () => [...element.querySelectorAll('[data-start][tabindex]')];
function stopAt(one) {
  element.querySelectorAll('[data-start][tabindex="0"]').forEach((other) => { other.tabIndex = -1; });
  one.tabIndex = 0;
}
function prepare() {
  const all = stops();
  const text = [...element.querySelector('.text')?.textContent ?? ''];  // code points, as in Python
  for (const one of all.filter((one) => one.matches('.entity'))) {
    one.role = 'link';  // to its explanation; a button would hide the entities in it from screen readers
    one.ariaLabel = `${text.slice(one.dataset.start, one.dataset.end).join('')}: ${one.title}`;
  }
  if (all.filter((one) => one.tabIndex === 0).length > 1) stopAt(all[0]);
}
new MutationObserver(prepare).observe(element, {childList: true, subtree: true});
element.addEventListener('focusin', (event) => {
  if (event.target.matches('[data-start][tabindex]')) stopAt(event.target);
});
element.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' || event.key === ' ') choose(event);
  const all = stops(), place = all.indexOf(event.target);
  const places = {ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1,
                  Home: 0, End: all.length - 1};
  if (place < 0 || !(event.key in places)) return;
  event.preventDefault();
  all[places[event.key]]?.focus();
});
