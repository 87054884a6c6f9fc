"""CSS and JavaScript of the page; the drawing includes its own style.

Gradio prefixes each selector of a list with a class, and mistakes commas in `:is()` for separators of such a list. It
drops a shorthand with variables that is followed by a longhand of the same property.
"""

STYLE = """
.gradio-container .app { max-width: 1280px !important; padding: 12px 20px !important; }
.block.page-head h1 { margin: 0 0 2px; font-size: 1.5rem; line-height: 1.25; font-weight: 650; }
.block.page-head p { margin: 0; color: var(--body-text-color-subdued); }
.page-areas { display: grid !important; grid-template-columns: 4fr 7fr; align-items: start; }
.page-areas > * { min-width: 0 !important; }
#examples button { text-align: start; font-size: 0.85rem; }

.block.sheet {
  background: var(--block-background-fill); border: 1px solid var(--border-color-primary);
  border-radius: var(--block-radius); padding: 4px 6px; color: var(--body-text-color); overflow: hidden;
}
#drawing { min-height: 110px; }  /* room for the progress bar, which has the place for itself */
.page-results[data-state=asked] .sheet > :not([data-testid=status-tracker]) { visibility: hidden; }
.page-results[data-state=old] .sheet { border-style: dashed; border-color: var(--color-accent); }
.page-results:not([data-state=old]) #outdated { position: absolute; }  /* without a gap of its own */
.page-results:not([data-state=old]) #outdated p { display: none; }
#outdated p { margin: 0; font-weight: 600; color: var(--body-text-color); }
.sheet .nested-entities > .text { font-size: 1.05rem; }
/* Scrolling boxes have a shadow at each side with hidden content. */
.long .text, .entity-table.long, .explanation pre {
  --cover: var(--block-background-fill); --shadow: color-mix(in srgb, var(--body-text-color) 35%, transparent);
}
.long .text, .entity-table.long {
  max-height: 60vh; overflow: auto;
  background:
    linear-gradient(to bottom, var(--cover) 24px, transparent) top / 100% 48px no-repeat local,
    linear-gradient(to top, var(--cover) 24px, transparent) bottom / 100% 48px no-repeat local,
    linear-gradient(to bottom, var(--shadow), transparent) top / 100% 12px no-repeat scroll,
    linear-gradient(to top, var(--shadow), transparent) bottom / 100% 12px no-repeat scroll;
}
.explanation pre {
  overflow-x: auto; font-size: 0.75rem; line-height: 1.45; margin: 6px 0 0; white-space: pre;
  background:
    linear-gradient(to right, var(--cover) 24px, transparent) left / 48px 100% no-repeat local,
    linear-gradient(to left, var(--cover) 24px, transparent) right / 48px 100% no-repeat local,
    linear-gradient(to right, var(--shadow), transparent) left / 12px 100% no-repeat scroll,
    linear-gradient(to left, var(--shadow), transparent) right / 12px 100% no-repeat scroll;
}
.hint { margin: 0; color: var(--body-text-color-subdued); }
.hint + .nested-entities { margin-top: 10px; }
.error {
  margin: 0; padding: 10px 14px; border-radius: 6px; overflow-wrap: anywhere; color-scheme: light;
  color: light-dark(#7a1010, #ffd7d7); background: light-dark(#fdecec, #4c1d1d); border-inline-start: 4px solid #d33;
}
.dark .error { color-scheme: dark; }

.entity-table table { width: 100%; border-collapse: collapse; font-size: 0.85rem; }
.entity-table caption { text-align: start; font-weight: 600; padding: 0 0 6px; }
.entity-table tr > * { padding: 5px 0 5px 8px; border-bottom: 1px solid var(--border-color-primary); }
.entity-table tr > :first-child { padding-inline-start: 0; min-width: 6em; overflow-wrap: anywhere; }
.entity-table tr > :nth-child(n + 3) { text-align: end; font-variant-numeric: tabular-nums; }
.entity-table th {
  text-align: start; font-weight: 500; color: var(--body-text-color-subdued);
  position: sticky; top: 0; background: var(--block-background-fill);
}
.sheet table span[class*=kind] { border-bottom: 3px var(--pattern) var(--colour); }
.entity-table tbody tr { cursor: pointer; }
.entity-table tbody tr:hover, .entity-table tbody tr[aria-current] { background: var(--background-fill-secondary); }
.entity-table tbody tr[aria-current] td:first-child { font-weight: 600; }
.entity-table tbody tr:focus-visible { outline: 2px solid var(--color-accent); outline-offset: -2px; }

.explanation { margin: 0; }
.explanation table { width: 100%; margin-top: 8px; border-collapse: collapse; table-layout: fixed; font-size: 0.8rem; }
.explanation tr > * { padding: 3px 4px; text-align: center; font-weight: 400; overflow-wrap: anywhere; }
.explanation td { font-variant-numeric: tabular-nums; }
.explanation thead td { width: 27%; }
.explanation thead th { padding-inline: 1px; font-size: 0.66rem; font-weight: 500; vertical-align: bottom; }
.explanation tbody th { padding-inline-start: 0; text-align: start; }
.explanation .heading { padding-top: 14px; color: var(--body-text-color-subdued); white-space: nowrap; }
.explanation tr > :nth-child(2) { border-inline: 2px solid var(--color-accent); }
.explanation thead th:nth-child(2) { border-top: 2px solid var(--color-accent); }
.explanation tbody:last-child tr:last-child td:nth-child(2) { border-bottom: 2px solid var(--color-accent); }
.explanation .bar td { background: linear-gradient(to right, #0072b260 calc(100% * var(--share)), transparent 0); }
.explanation .shade td { background: color-mix(in srgb, #0072b2 calc(45% * var(--share)), transparent); }
.explanation .sum > * { font-weight: 600; border-top: 1px solid var(--body-text-color); }
.explanation figcaption ~ p { margin-top: 8px; font-size: 0.8rem; }
.explanation .narrow { display: none; }
.explanation summary { cursor: pointer; margin-top: 10px; font-size: 0.9rem; }

@media (max-width: 800px) {
  .gradio-container .app { padding: 12px !important; }
  .page-areas { grid-template-columns: 1fr; }
  .entity-table table { font-size: 0.8rem; }
  .explanation tr > :nth-child(n + 5), .explanation .wide { display: none; }
  .explanation .narrow { display: block; }
  .explanation .heading { white-space: normal; }
  .explanation thead th { font-size: 0.62rem; }
}
"""

# Runs once in the elements of the drawing and of the table, which remain when their content changes.
CHOOSE_ENTITY = """
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
  stops().forEach((other) => { other.tabIndex = other === one ? 0 : -1; });
}
function prepare() {
  const all = stops();
  all.filter((one) => one.matches('.entity')).forEach((one) => one.setAttribute('role', 'button'));
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
"""

# Scrolls to an element whose top is out of sight, with some of what is above it.
_SHOW = """
  const top = document.querySelector('%s').getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) scrollBy({top: top - innerHeight / 4, behavior: 'smooth'});
"""
# The area of results knows the text that it is of, and its state: asked, current, or old, for another text.
_COMPARE = """
  const results = document.querySelector('.page-results'), text = document.querySelector('#text textarea').value;
  const compare = () => { results.dataset.state = text === results.asked ? 'current' : 'old'; };
"""
SHOW_EXPLANATION = f"() => {{{_SHOW % '#explanation'}}}"
_FORGET = "results.querySelectorAll('[aria-current]').forEach((one) => one.removeAttribute('aria-current'));"
_ASK = "results.asked = text; results.dataset.state = 'asked';"
# To the progress bar; no earlier result is behind it.
HIDE_RESULT = f"() => {{{_COMPARE} {_ASK} {_FORGET} {_SHOW % '#drawing'}}}"
# The page may be long enough to scroll only now.
SHOW_RESULT = f"() => {{{_COMPARE} compare(); {_SHOW % '#drawing'}}}"
COMPARE_TEXT = f"() => {{{_COMPARE} if ((results.dataset.state ?? 'asked') !== 'asked') compare(); }}"
# Gradio leaves the list of models open, over what is below it, when the Tab key moves on.
CLOSE_LIST = """() => {
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Tab' || !event.target.matches('#model input')) return;
    event.target.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
  });
}"""
