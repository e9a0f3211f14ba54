// Values of charts, under the pointer and by the arrow keys; and a word under tables that scroll.
for (const svg of document.querySelectorAll('.chart > svg')) {
  const lines = [...svg.querySelectorAll('[data-values]')].map(g => ({
    g, places: g.querySelector('path').getAttribute('d').match(/[\d.-]+ [\d.-]+/g).map(p => p.split(' ').map(Number)),
    values: g.dataset.values.split(',').map(v => v.split(' ').map(Number)),
  }));
  const stops = [...new Set(lines.flatMap(l => l.places.map(p => p[0])))].sort((a, b) => a - b);
  const tip = Object.assign(document.createElement('div'), {className: 'tip', hidden: true});
  tip.setAttribute('aria-live', 'polite');
  svg.after(tip);
  const guide = document.createElementNS(svg.namespaceURI, 'line');
  guide.setAttribute('class', 'guide');
  let at = -1;
  const hide = () => { tip.hidden = true; guide.remove(); at = -1; };
  const text = (tag, content, parent) => parent.appendChild(Object.assign(document.createElement(tag), {textContent: content}));
  const number = v => String(Number(v.toPrecision(5)));
  const show = i => {
    at = Math.min(Math.max(i, 0), stops.length - 1);
    const x = stops[at], reach = 0.75 * (stops.at(-1) - stops[0]) / Math.max(1, stops.length - 1) + 0.1;
    tip.replaceChildren();
    let head = null;
    for (const l of lines) {
      const k = l.places.reduce((best, p, n) => Math.abs(l.places[best][0] - x) > Math.abs(p[0] - x) ? n : best, 0);
      if (Math.abs(l.places[k][0] - x) > reach) continue;
      if (head === null || Math.abs(l.places[k][0] - x) === 0) head = l.values[k][0];
      const row = text('div', '', tip);
      const name = text('span', '', row);
      name.className = l.g.getAttribute('class').split(' ')[0];
      text('em', l.g.dataset.name, name);
      text('b', number(l.values[k][1]), row);
    }
    tip.prepend(Object.assign(document.createElement('small'), {textContent: `${svg.dataset.x} ${number(head)}`}));
    const box = svg.viewBox.baseVal, share = x / box.width;
    for (const [name, value] of Object.entries({x1: x, x2: x, y1: 10, y2: box.height - 38})) guide.setAttribute(name, value);
    svg.append(guide);
    tip.hidden = false;
    const place = share * svg.getBoundingClientRect().width, wide = tip.offsetWidth, room = svg.parentNode.clientWidth;
    tip.style.left = `${Math.max(0, share > 0.5 ? place - wide - 12 : Math.min(place + 12, room - wide))}px`;
  };
  svg.addEventListener('pointermove', e => {
    const x = (e.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width * svg.viewBox.baseVal.width;
    show(stops.reduce((best, s, n) => Math.abs(stops[best] - x) > Math.abs(s - x) ? n : best, 0));
  });
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('focus', () => { if (svg.matches(':focus-visible')) show(stops.length - 1); });
  svg.addEventListener('blur', hide);
  svg.addEventListener('keydown', e => {
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: stops.length - 1}[e.key];
    if (e.key === 'Escape') hide();
    if (to === undefined) return;
    e.preventDefault();
    show(to);
  });
}
const tables = document.querySelectorAll('.wide');
const mark = () => tables.forEach(t => t.classList.toggle('scrolls', t.scrollWidth > t.clientWidth));
addEventListener('resize', mark);
document.addEventListener('toggle', mark, true);
mark();
