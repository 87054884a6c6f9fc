"""CSS and JavaScript of the page, beside those that the drawing brings with it."""

STYLE = """
.gradio-container .app { max-width: 1280px !important; padding: 12px 20px !important; }
.block.page-head h1 { margin: 0 0 2px; font-size: 1.5rem; line-height: 1.25; font-weight: 650; }
.block.page-head p { margin: 0; color: var(--body-text-color-subdued); }
.page-areas { display: grid !important; grid-template: "inputs results" auto "list results" 1fr / 4fr 7fr; }
.page-areas > * { min-width: 0 !important; }
.page-inputs { grid-area: inputs; }
.page-results { grid-area: results; }
.page-list { grid-area: list; }
#examples button { text-align: start; font-size: 0.85rem; }

.block.sheet {
  background: var(--block-background-fill); border: 1px solid var(--border-color-primary);
  border-radius: var(--block-radius); padding: 4px 6px; color: var(--body-text-color); overflow: hidden;
}
#drawing { min-height: 110px; }  /* room for the progress bar */
.sheet .nested-entities > .text { font-size: 1.05rem; max-height: 60vh; overflow-y: auto; }
.hint { margin: 0; color: var(--body-text-color-subdued); }
.hint + .nested-entities { margin-top: 10px; }
.error {
  margin: 0; padding: 10px 14px; border-radius: 6px; overflow-wrap: anywhere; color-scheme: light;
  color: light-dark(#7a1010, #ffd7d7); background: light-dark(#fdecec, #4c1d1d); border-inline-start: 4px solid #d33;
}
.dark .error { color-scheme: dark; }

.entity-table { max-height: 50vh; overflow: auto; }
.entity-table table { width: 100%; border-collapse: collapse; font-size: 0.85rem; }
.entity-table caption { text-align: start; font-weight: 600; padding: 0 0 6px; }
.entity-table :is(th, td) { padding: 5px 0 5px 8px; border-bottom: 1px solid var(--border-color-primary); }
.entity-table :is(th, td):first-child { padding-inline-start: 0; min-width: 6em; overflow-wrap: anywhere; }
.entity-table :is(th, td):nth-child(n + 3) { text-align: end; font-variant-numeric: tabular-nums; }
.entity-table th {
  text-align: start; font-weight: 500; color: var(--body-text-color-subdued);
  position: sticky; top: 0; background: var(--block-background-fill);
}
.entity-table td span { border-bottom: 3px var(--pattern) var(--colour); }
.entity-table tbody tr { cursor: pointer; }
.entity-table tbody tr:is(:hover, [aria-current]) { background: var(--background-fill-secondary); }
.entity-table tbody tr[aria-current] td:first-child { font-weight: 600; }
.entity-table tbody tr:focus-visible { outline: 2px solid var(--color-accent); outline-offset: -2px; }

.explanation { margin: 0; }
.explanation .scroll { overflow-x: auto; }
.explanation img { display: block; min-width: 600px; max-width: 100%; height: auto; mix-blend-mode: multiply; }
.dark .explanation img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; }
.explanation summary { cursor: pointer; margin-top: 6px; font-size: 0.9rem; }
.explanation pre { overflow-x: auto; font-size: 0.75rem; line-height: 1.45; margin: 6px 0 0; white-space: pre; }

@media (max-width: 800px) {
  .gradio-container .app { padding: 12px !important; }
  .page-areas { grid-template: "inputs" "results" "list" / 1fr; }
  .entity-table table { font-size: 0.8rem; }
  .explanation img { min-width: 520px; }
}
"""

# Runs once in the element of the drawing and in that of the table; both stay when their content changes.
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
element.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' || event.key === ' ') choose(event);
});
"""

# Where its upper end is out of sight, what was asked for comes into it, with some of what stands above.
_SHOW = """() => {
  const top = document.querySelector('%s').getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) scrollBy({top: top - innerHeight / 4, behavior: 'smooth'});
}"""
SHOW_DRAWING, SHOW_EXPLANATION = _SHOW % "#drawing", _SHOW % "#explanation"
