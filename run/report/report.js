// Draws the page of `capstan report` from the JSON in the element #data, which page.cpp writes. Texts of runs become
// text nodes, never HTML. tests/interop/report_pages.py opens pages of all kinds of runs.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);

// Elements.

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter(child => child !== null));
  return made;
};

const shape = (tag, attributes = {}, text = '') => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
};

const hint = text => element('p', {className: 'hint'}, text);
const least = values => values.reduce((a, b) => Math.min(a, b));
const greatest = values => values.reduce((a, b) => Math.max(a, b));

/// A part that opens. It is filled when it opens first: a page may have a hundred runs.
function fold(title, build, open = false) {
  const made = element('details', {open}, element('summary', {}, title));
  const fill = () => made.append(...build().filter(part => part !== null));
  open ? fill() : made.addEventListener('toggle', fill, {once: true});
  return made;
}

function number(value, precision = 5) {
  const size = Math.abs(value);
  const digits = size >= 1e6 ? value / 1e6 : size >= 1e4 ? value / 1e3 : value;
  if (size > 0 && size < 1e-3) return Number(value.toPrecision(4)).toExponential();
  return Number(digits.toPrecision(precision)) + (size >= 1e6 ? 'M' : size >= 1e4 ? 'k' : '');
}

/// The first row is the header. Columns of numbers are aligned to the right; colours[i] marks row i of the body.
function table(rows, name, colours = []) {
  const [header, ...body] = rows;
  const kinds = header.map((_, c) => c > 0 && body.every(row => /^([-+\d.–]|$)/.test(row[c])) ? 'number' : '');
  const head = element('tr', {}, ...header.map((text, c) => element('th', {scope: 'col', className: kinds[c]}, text)));
  const lines = body.map((row, r) => element('tr', {}, ...row.map((text, c) => {
    const content = element('div', {}, c === 0 && r in colours ? sample(colours[r]) : null, text);
    return element(c === 0 ? 'th' : 'td', c === 0 ? {scope: 'row'} : {className: kinds[c]}, content);
  })));
  return scrolling(name, element('table', {}, element('thead', {}, head), element('tbody', {}, ...lines)));
}

function scrolling(name, content) {
  const region = element('div', {className: 'wide', tabIndex: 0, role: 'region'}, content);
  region.setAttribute('aria-label', name);
  return region;
}

const figures = pairs => element('dl', {className: 'figures'}, ...pairs.map(([name, value]) =>
  element('div', {}, element('dt', {}, name), element('dd', {}, value))));

// Lines: each run has a colour, and after the last one a dash pattern with it.

const lineClass = colour => colour === null ? '' : `c${colour % 6} d${Math.floor(colour / 6) % 4}`;

function sample(colour, marked = true) {
  const made = shape('svg', {class: 'sample', viewBox: '0 0 24 10', 'aria-hidden': 'true'});
  const line = made.appendChild(shape('g', {class: `${lineClass(colour)} ${marked ? 'marked' : 'thin'}`}));
  line.append(shape('path', {d: 'M1 5L23 5'}));
  if (marked) line.append(shape('circle', {cx: 12, cy: 5, r: 2.6}));
  return made;
}

/// Round values from `low` or below it to `high` or above it.
function ticks(low, high, count = 5) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find(factor => factor * power > rough * 0.999);
  const first = Math.floor(low / step + 1e-6), last = Math.ceil(high / step - 1e-6);
  return Array.from({length: last - first + 1}, (_, i) => (first + i) * step);
}

function logTicks(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const stride = Math.max(1, Math.ceil((last - first) / 7)), factors = last - first > 2 ? [1] : [1, 2, 5];
  const all = [];
  for (let power = first; power <= last + stride; power += stride) all.push(...factors.map(f => f * 10 ** power));
  return all.slice(all.filter(tick => tick <= low).length - 1, all.findIndex(tick => tick >= high) + 1);
}

// The place of a chart's lines in its picture.
const frame = {width: 400, height: 250, left: 46, right: 384, top: 10, bottom: 206};

/// The axes of a chart: ticks, and where a value is in the picture.
function axes(points, {log, fromZero, most}) {
  const xs = points.map(point => point[0]), ys = points.map(point => point[1]);
  let [low, high] = [least(ys), greatest(ys)];
  const isLog = log && low > 0 && high >= 10 * low;
  if (fromZero) low = Math.min(0, low);
  const room = 0.05 * Math.abs(high || 1);
  if (!(high - low > 1e-9 * Math.abs(high))) [low, high] = [low - room, high + room];
  const yTicks = (isLog ? logTicks(low, high) : ticks(low, high)).filter(tick => tick <= most);
  const scale = isLog ? Math.log : value => value;
  const bottom = scale(yTicks[0]), height = scale(Math.max(yTicks.at(-1), isLog ? 0 : Math.min(high, most))) - bottom;
  const begin = least(xs), end = greatest(xs) > begin ? greatest(xs) : begin + 1;
  return {
    isLog, yTicks, xTicks: ticks(begin, end).filter(tick => tick >= begin && tick <= end),
    x: value => frame.left + (frame.right - frame.left) * (value - begin) / (end - begin),
    y: value => frame.bottom - (frame.bottom - frame.top) * (scale(value) - bottom) / height,
  };
}

/// lines: {name, colour, points: [[x, y], ...], marked, best}. Null where no line has two points.
function chart({title, unit = '', xTitle, lines, log = false, fromZero = false, most = Infinity}) {
  const drawn = lines.map(line => ({...line, points: line.points.filter(point => point.every(Number.isFinite))}))
    .filter(line => line.points.length > 0);
  if (drawn.every(line => line.points.length < 2)) return null;
  const figure = element('figure', {className: 'chart'});
  const axis = axes(drawn.flatMap(line => line.points), {log, fromZero, most});
  const size = `0 0 ${frame.width} ${frame.height}`;
  const picture = shape('svg', {viewBox: size, role: 'img', 'aria-label': `${title} over ${xTitle}`});
  const line = (name, x1, x2, y1, y2) => shape('line', {class: name, x1, x2, y1, y2});
  for (const tick of axis.yTicks) {
    picture.append(line('grid', frame.left, frame.right, axis.y(tick), axis.y(tick)));
    picture.append(shape('text', {class: 'end', x: frame.left - 6, y: axis.y(tick) + 4}, number(tick)));
  }
  for (const tick of axis.xTicks) {
    picture.append(line('axis', axis.x(tick), axis.x(tick), frame.bottom, frame.bottom + 5));
    picture.append(shape('text', {class: 'middle', x: axis.x(tick), y: frame.bottom + 18}, number(tick)));
  }
  picture.append(line('axis', frame.left, frame.right, frame.bottom, frame.bottom));
  picture.append(shape('text', {class: 'middle', x: (frame.left + frame.right) / 2, y: frame.height - 8}, xTitle));
  for (const each of drawn) picture.append(drawnLine(each, axis));
  const label = [unit, axis.isLog ? 'log scale' : ''].filter(Boolean).join(', ');
  figure.append(element('figcaption', {}, title + ' ', element('small', {}, label)), picture);
  showValues(figure, picture, drawn, axis, xTitle);
  return figure;
}

function drawnLine(line, axis) {
  const group = shape('g', {class: `${line.style ?? lineClass(line.colour)} ${line.marked ? 'marked' : 'thin'}`});
  const places = line.points.map(([x, y]) => [axis.x(x).toFixed(1), axis.y(y).toFixed(1)]);
  group.append(shape('path', {d: 'M' + places.map(place => place.join(' ')).join('L')}));
  if (line.marked && places.length <= 60) places.forEach(([x, y]) => group.append(shape('circle', {cx: x, cy: y, r: 2.4})));
  if (line.best) group.append(shape('circle', {class: 'best', cx: axis.x(line.best[0]), cy: axis.y(line.best[1]), r: 5}));
  return group;
}

/// The values of the lines at the pointer, those closest to it first.
function showValues(figure, picture, lines, axis, xTitle) {
  const shown = 12, guide = shape('line', {class: 'guide', y1: frame.top, y2: frame.bottom});
  const tip = figure.appendChild(element('div', {className: 'tip', hidden: true}));
  const placed = lines.map(line => ({...line, xs: line.points.map(point => axis.x(point[0]))}));
  const stops = [...new Set(placed.flatMap(line => line.xs))].sort((a, b) => a - b);
  const nearest = (xs, x) => xs.reduce((best, at, i) => Math.abs(at - x) < Math.abs(xs[best] - x) ? i : best, 0);
  picture.addEventListener('pointermove', event => {
    const box = picture.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * frame.width;
    const y = (event.clientY - box.top) / box.height * frame.height, stop = stops[nearest(stops, x)];
    const found = placed.map(line => ({line, i: nearest(line.xs, stop)}))
      .map(({line, i}) => ({...line, point: line.points[i], distance: Math.abs(line.xs[i] - stop)}))
      .filter(line => line.distance < 12)
      .sort((a, b) => Math.abs(axis.y(a.point[1]) - y) - Math.abs(axis.y(b.point[1]) - y));
    const here = found.find(line => line.distance === 0).point;
    tip.replaceChildren(element('small', {}, `${xTitle} ${number(here[0])}`), ...found.slice(0, shown).map(line =>
      element('div', {}, element('span', {className: line.style ?? lineClass(line.colour)}, element('em', {}, line.name)),
        element('b', {}, number(line.point[1])))));
    if (found.length > shown) tip.append(element('small', {}, `and ${found.length - shown} more`));
    for (const end of ['x1', 'x2']) guide.setAttribute(end, stop);
    picture.append(guide);
    placeTip(tip, picture, stop / frame.width);
  });
  picture.addEventListener('pointerleave', () => {
    tip.hidden = true;
    guide.remove();
  });
}

function placeTip(tip, picture, share) {
  tip.hidden = false;
  const place = share * picture.getBoundingClientRect().width, room = picture.parentNode.clientWidth;
  const left = share > 0.5 ? place - tip.offsetWidth - 12 : Math.min(place + 12, room - tip.offsetWidth);
  tip.style.left = `${Math.max(0, left)}px`;
}

// Heat maps: orange above 0, blue below, grey where there is no value.

/// The 99.5th percentile of the magnitudes: a few strong values would make all others pale.
function colourLimit(maps) {
  const sizes = maps.flat(2).filter(Number.isFinite).map(Math.abs).filter(size => size > 0).sort((a, b) => a - b);
  return sizes[Math.floor((sizes.length - 1) * 0.995)] ?? 1;
}

/// A square of values. describe(row, column, value) is what the pointer shows.
function heatMap(title, rows, limit, rowTitle, columnTitle, describe) {
  const size = rows.length, side = 210, left = 44;
  const pixels = new ImageData(size, size);
  for (let r = 0; r < size; ++r) for (let c = 0; c < size; ++c) {
    const value = rows[r][c] ?? null;
    const colour = value === null ? [128, 128, 128] : value > 0 ? [230, 97, 1] : [33, 113, 200];
    pixels.data.set([...colour, value === null ? 40 : 255 * Math.min(1, Math.abs(value) / limit)], 4 * (r * size + c));
  }
  const canvas = element('canvas', {width: size, height: size});
  canvas.getContext('2d').putImageData(pixels, 0, 0);
  const picture = shape('svg', {viewBox: '0 0 262 256', role: 'img', 'aria-label': `${title} ${rowTitle}, ${columnTitle}`});
  const square = {x: left, y: 6, width: side, height: side};
  picture.append(shape('image', {href: canvas.toDataURL(), preserveAspectRatio: 'none', ...square}));
  picture.append(shape('rect', {class: 'frame', ...square}));
  for (const tick of size > 1 ? ticks(0, size - 1, 4) : [0]) {
    if (tick % 1 !== 0 || tick > size - 1) continue;
    const place = (tick + 0.5) / size * side;
    picture.append(shape('text', {class: 'end', x: left - 5, y: 10 + place}, tick));
    picture.append(shape('text', {class: 'middle', x: left + place, y: side + 20}, tick));
  }
  picture.append(shape('text', {class: 'middle', transform: `translate(12 ${6 + side / 2}) rotate(-90)`}, rowTitle));
  picture.append(shape('text', {class: 'middle', x: left + side / 2, y: side + 38}, columnTitle));
  const tip = element('div', {className: 'tip', hidden: true});
  picture.addEventListener('pointermove', event => {
    const box = picture.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width * 262 - left, (event.clientY - box.top) / box.height * 256 - 6];
    const [r, c] = [Math.floor(y / side * size), Math.floor(x / side * size)];
    const text = r >= 0 && c >= 0 && r < size && c < size ? describe(r, c, rows[r][c] ?? null) : null;
    tip.replaceChildren(text ?? '');
    text === null ? tip.hidden = true : placeTip(tip, picture, (event.clientX - box.left) / box.width);
  });
  picture.addEventListener('pointerleave', () => { tip.hidden = true; });
  return element('figure', {className: 'map'}, element('figcaption', {}, title), picture, tip);
}

/// The maps of the heads of a layer, with one scale of colours.
function heatMaps(maps, caption, words) {
  const limit = colourLimit(maps), signed = maps.flat(2).some(value => value < 0);
  const at = place => words ? `${place} “${words(place)}”` : place;
  const describe = (t, s, value) => `t ${at(t)}, s ${at(s)}: ${value === null ? 'not seen' : number(value)}`;
  const drawn = maps.map((rows, head) =>
    heatMap(maps.length > 1 ? `head ${head + 1}` : '', rows, limit, 'target t', 'source s', describe));
  const scale = element('p', {className: 'scale'}, signed ? number(-limit, 3) : '0',
    element('span', {className: `bar ${signed ? 'two' : 'one'}`}), `${number(limit, 3)} ${caption}`);
  return [element('div', {className: 'maps'}, ...drawn), scale];
}

// What is on the page.

/// The line of a run: its values `y` of training or of validation over `x`.
function curve(run, colour, part, x, y, factor = 1) {
  const what = part === 'train' ? 'training' : 'validation', columns = run[part];
  const points = columns.step.map((_, i) => [columns[x][i], factor * (columns[y]?.[i] ?? NaN)]);
  const best = part === 'valid' && points.length > 1 ? points[columns.step.indexOf(run.best)] ?? null : null;
  return {name: data.runs.length > 1 ? `${what}: ${run.name}` : what, colour, points, best, marked: part === 'valid'};
}

function curveCharts() {
  if (!data.curves) return [];
  const training = (x, y) => data.runs.map((run, i) => curve(run, i, 'train', x, y));
  const validation = (x, y, factor) => data.runs.map((run, i) => curve(run, i, 'valid', x, y, factor));
  const several = data.runs.length > 1;
  const loss = (title, x, xTitle) => {
    const ofTraining = training(x, 'loss').map(line => several ? line : {...line, colour: 1});  // beside validation
    return chart({title, unit: data.loss_unit, xTitle, log: true, lines: [...ofTraining, ...validation(x, 'loss')]});
  };
  const ofSteps = (title, y, unit, choices) => chart({title, unit, xTitle: 'step', lines: training('step', y), ...choices});
  const charts = [loss('Loss', 'step', 'step')];
  for (const {name, title, share} of data.metrics) {
    const lines = validation('step', name, share ? 100 : 1);
    charts.push(chart({title, unit: share ? '%' : '', xTitle: 'step', most: share ? 100 : Infinity, lines}));
  }
  if (several) charts.push(loss('Loss over time', 'seconds', 'seconds of training'));
  charts.push(ofSteps('Learning rate', 'learning_rate', '', {fromZero: true}));
  charts.push(ofSteps('Gradient norm', 'gradient_norm', 'before clipping', {log: true}));
  charts.push(ofSteps('Throughput', 'tokens_per_second', 'tokens per second', {fromZero: true}));
  return charts.filter(made => made !== null);
}

function legend() {
  const entry = (mark, text) => element('li', {}, mark, text);
  const several = data.runs.length > 1;
  const runs = several && data.runs.length <= 24 ? data.runs.map((run, i) => entry(sample(i), run.name)) : [];
  const kinds = [entry(sample(several ? null : 1, false), 'training'), entry(sample(several ? null : 0), 'validation'),
    entry(element('span', {className: 'ring'}), 'best by the measure that the run watches')];
  return element('ul', {className: 'legend'}, ...runs, ...kinds);
}

function comparison(group) {
  const tested = index => data.runs[index].evaluation?.split === 'test' ? data.runs[index].evaluation.accuracy : undefined;
  const rows = group.table.map(row => [...row]);
  if (group.runs.some(index => tested(index) !== undefined))
    rows.forEach((row, r) => row.push(r === 0 ? 'test accuracy' : tested(group.runs[r - 1])?.toFixed(4) ?? '-'));
  const parts = [element('p', {}, group.what), table(rows, 'comparison of the runs', group.runs)];
  if (group.common.length > 0) parts.push(hint(`The same in all: ${group.common.join(', ')}.`));
  if (group.seeds.length > 0)
    parts.push(element('p', {}, 'Over seeds and folds, mean ± standard deviation:'), table(group.seeds, 'means'));
  return parts;
}

function confusionTable({classes, confusion}) {
  const names = classes.map(entry => entry.class), totals = confusion.map(row => row.reduce((a, b) => a + b, 0));
  const column = name => element('th', {scope: 'col', className: 'column'}, element('span', {}, name));
  const head = element('tr', {}, element('th', {className: 'corner'}, 'true class, predicted class'), ...names.map(column));
  const cell = (count, truth, predicted) => {
    const share = count > 0 ? count / totals[truth] : 0;
    const made = element('td', {className: `${truth === predicted ? 'right' : 'wrong'}${share > 0.5 ? ' strong' : ''}`}, count);
    made.style.setProperty('--share', share);
    made.title = `${count} of ${totals[truth]} ${names[truth]}: predicted as ${names[predicted]}`;
    return made;
  };
  const rows = confusion.map((row, truth) => element('tr', {}, element('th', {scope: 'row'}, names[truth]),
    ...row.map((count, predicted) => cell(count, truth, predicted))));
  return scrolling('confusion matrix',
    element('table', {className: 'confusion'}, element('thead', {}, head), element('tbody', {}, ...rows)));
}

/// Of more classes than a table can show.
function confusionMap({classes, confusion}) {
  const totals = confusion.map(row => row.reduce((a, b) => a + b, 0));
  const shares = confusion.map((row, truth) => row.map((count, c) => (truth === c ? -1 : 1) * count / (totals[truth] || 1)));
  const describe = (truth, c) =>
    `${confusion[truth][c]} of ${totals[truth]} ${classes[truth].class}: predicted as ${classes[c].class}`;
  const map = heatMap('Confusions: right blue, wrong orange', shares, 1, 'true class', 'predicted class', describe);
  const found = confusion.flatMap((row, truth) => row.map((count, c) => ({count, truth, c})))
    .filter(({count, truth, c}) => count > 0 && truth !== c).sort((a, b) => b.count - a.count);
  const named = found.map(({count, truth, c}) => ({count, class: classes[truth].class, predicted: classes[c].class}));
  return [map, confusionList(named)];
}

function confusionList(found) {
  const rows = found.slice(0, 10).map(entry => [entry.class, entry.predicted, String(entry.count)]);
  return rows.length === 0 ? null : element('div', {}, element('p', {className: 'sub'}, 'Most frequent confusions'),
    table([['true class', 'predicted as', 'examples'], ...rows], 'most frequent confusions'));
}

function calibration(bins) {
  const percent = bins.map(bin => [100 * bin.confidence, 100 * bin.accuracy]);
  const lines = [{name: 'well calibrated', style: 'ideal', points: [[0, 0], [100, 100]]},
    {name: 'this model', colour: 0, points: percent, marked: true}];
  const xTitle = 'probability of the likeliest class in %';
  return chart({title: 'Calibration', unit: 'accuracy in %', xTitle, most: 100, fromZero: true, lines});
}

function classTable(classes) {
  const optional = ['threshold', 'average_precision'].filter(key => classes.some(entry => key in entry));
  const columns = ['precision', 'recall', 'f1', ...optional];
  const rows = [...classes].sort((a, b) => b.examples - a.examples).slice(0, 200)
    .map(entry => [entry.class, ...columns.map(key => entry[key]?.toFixed(4) ?? '-'), String(entry.examples)]);
  const made = table([['class', ...columns.map(key => key.replace('_', ' ')), 'examples'], ...rows], 'classes');
  return classes.length > 20 ? fold(`${classes.length} classes`, () => [made]) : made;
}

function evaluation(found) {
  const pairs = Object.entries(found).filter(([, value]) => typeof value === 'number')
    .map(([name, value]) => [name.replaceAll('_', ' '), Number.isInteger(value) && value > 1 ? String(value) : value.toFixed(4)]);
  const parts = [figures(pairs)];
  if (found.confusion) parts.push(...(found.confusion.length <= 20 ? [confusionTable(found)] : confusionMap(found)));
  if (found.confusions) parts.push(confusionList(found.confusions));
  if (found.calibration) parts.push(element('div', {className: 'charts'}, calibration(found.calibration)));
  if (found.classes) parts.push(classTable(found.classes));
  if (found.examples?.length > 0)
    parts.push(element('p', {className: 'sub'}, 'The first pairs'),
      table([['source', 'target', 'written'], ...found.examples], 'pairs'));
  return parts;
}

function ngrams(classes) {
  const shown = classes.length > 20 ? 5 : 12;
  const entry = ([name, weight], strongest) => {
    const made = element('dd', {}, element('span', {}, name), ` ${weight.toFixed(2)}`);
    made.style.setProperty('--share', weight / strongest);
    return made;
  };
  const lists = classes.map(({name, ngrams: list}) =>
    element('div', {}, element('dt', {}, name), ...list.slice(0, shown).map(ngram => entry(ngram, list[0][1]))));
  const meaning = "What one occurrence adds to the logit of the class, before a text's n-grams are scaled to unit norm; in " +
    'n-grams of characters, _ is the edge of a word and · where it goes on; ^ and $ are the ends of a text.';
  return [hint(meaning), element('dl', {className: 'ngrams'}, ...lists)];
}

/// The text of one head: each word the darker the more of the weight it has.
function weightedWords(words, weights, head) {
  const strongest = Math.max(1e-9, ...weights);
  const line = element('p', {className: 'words'}, element('b', {}, `head ${head + 1} `));
  words.forEach((word, i) => {
    const made = element('span', {title: `${(100 * weights[i]).toFixed(2)} %`}, word.replaceAll('\n', '↵'));
    made.style.setProperty('--share', weights[i] / strongest);
    line.append(made);
  });
  line.append(element('small', {}, `strongest: ${(100 * strongest).toFixed(1)} %`));
  return line;
}

function layer(view, model) {
  const parts = [];
  const sub = title => parts.push(element('p', {className: 'sub'}, title));
  if (view.position_bias.length > 0) {
    sub('position bias');
    const caption = 'w of the first positions, added to the key of source s for target t (the logarithm of a factor)';
    parts.push(...heatMaps(view.position_bias, caption));
  }
  for (const {name, maps, words} of view.weights) {
    sub(name);
    parts.push(...words.map((weights, head) => weightedWords(model.words, weights, head)));
    if (maps.length > 0) parts.push(...heatMaps(maps, 'weight of source s for target t, tokens of the text above',
      token => model.words[model.word_of_token[token]].trim()));
  }
  return parts;
}

function modelView(model) {
  const parts = model.layers.map((view, i) => fold(view.name, () => layer(view, model), i === 0));
  if (model.layers.some(view => view.weights.length > 0))
    parts.unshift(hint('The text that the weights are of:'), element('blockquote', {}, model.words.join('')));
  return parts;
}

function runParts(run, heading) {
  const parts = run.notes.map(note => element('p', {className: 'note'}, note));
  const add = (title, content) => parts.push(element(heading, {}, title), ...content);
  const split = run.evaluation?.split === 'valid' ? 'validation' : run.evaluation?.split;
  if (run.evaluation) add(`Results on the ${split} data`, evaluation(run.evaluation));
  if (run.ngrams.length > 0) add('N-grams with the largest weights', ngrams(run.ngrams));
  if (run.sample[1]) add('A sample of text', [element('blockquote', {}, element('strong', {}, run.sample[0]), run.sample[1])]);
  if (run.model?.layers.length > 0) add('What the mixers learnt', modelView(run.model));
  add('Configuration', [fold('All keys', () => [scrolling('all keys', element('pre', {}, run.config))])]);
  return parts;
}

function page() {
  document.title = `${data.title} – Capstan`;
  const several = data.runs.length > 1, main = document.querySelector('main');
  const add = (...parts) => main.append(...parts.filter(part => part !== null));
  const lead = data.lead.map(text => element('p', {}, text));
  add(element('header', {}, element('h1', {}, data.title), ...lead, figures(data.results)));
  if (several) add(element('h2', {}, 'Comparison'), ...data.groups.flatMap(comparison));
  const charts = curveCharts();
  if (charts.length > 0)
    add(element('h2', {}, 'Learning curves'), legend(), hint('Values show under the pointer.'),
      element('div', {className: 'charts'}, ...charts));
  if (!several) return add(...runParts(data.runs[0], 'h2'));
  add(element('h2', {}, 'The runs'));
  data.runs.forEach((run, i) => {
    const made = fold(run.name, () => runParts(run, 'h3'), i === 0);
    made.classList.add('run');
    add(made);
  });
}

page();
