// The page: forms write and ask, a card for each memory shows its numbers and its answer.
'use strict';

const memories = [
  {name: 'Sum rule', equation: 'W ← W + v kᵀ',
   says: 'Adds every pair. A key that is written twice answers with the sum of both values.'},
  {name: 'Delta rule', equation: 'W ← W + β (v − W k) kᵀ',
   says: 'Adds what is missing. A second value under a key replaces the first.'},
  {name: 'Gated delta rule', equation: 'W ← α W + β (v − α W k) kᵀ',
   says: 'Fades by α with every write, then adds what is missing.'},
  {name: 'Continuous memory', equation: 'y = E[x(t)],  x(t) = B ψ(t)',
   says: 'The ∞-former: pairs are a signal over time. A write presses the past together; a read looks where the key was.'},
];
const example = [['france', 'paris'], ['italy', 'rome'], ['japan', 'tokyo'], ['germany', 'bonn'],
                 ['kenya', 'nairobi'], ['germany', 'berlin'], ['peru', 'lima']];
const find = id => document.getElementById(id);
const run = moduleOf(wordsModule);
let pairs = [];

function make(parent, tag, properties) {
  const element = Object.assign(document.createElement(tag), properties);
  parent.append(element);
  return element;
}

for (const memory of memories) {
  const card = make(find('memories'), 'article', {});
  make(card, 'h2', {textContent: memory.name});
  make(card, 'p', {className: 'equation', textContent: memory.equation});
  make(card, 'p', {className: 'says', textContent: memory.says});
  memory.canvas = make(card, 'canvas', {});
  memory.canvas.setAttribute('role', 'img');
  memory.canvas.setAttribute('aria-label', `the numbers of the ${memory.name}`);
  memory.answer = make(card, 'p', {className: 'answer'});
  memory.scores = make(card, 'div', {});
}

const dark = matchMedia('(prefers-color-scheme: dark)');
function colour(x) {
  const strength = Math.min(1, Math.abs(x) / 0.7), ground = dark.matches ? [32, 35, 40] : [255, 255, 255];
  const full = x > 0 ? [214, 60, 50] : [50, 110, 220];
  return ground.map((g, i) => g + strength * (full[i] - g));
}

function draw(memory, index) {
  const {rows, columns, values} = numbersOf(run, index), canvas = memory.canvas;
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext('2d'), image = context.createImageData(columns, rows);
  for (let j = 0; j < columns; ++j)
    for (let i = 0; i < rows; ++i) image.data.set([...colour(values[j * rows + i]), 255], 4 * (i * columns + j));
  context.putImageData(image, 0, 0);
}

function showAnswer(memory, index, key) {
  const words = [...new Set(pairs.map(pair => pair[1]))];
  memory.best = words.map(word => [word, run.score(index, ...putWords(run, word))]).sort((a, b) => b[1] - a[1]);
  memory.answer.textContent = memory.best.length ? `${key} → ${memory.best[0][0]}` : '';
  memory.scores.replaceChildren();
  for (const [word, score] of memory.best.slice(0, 3)) {
    const row = make(memory.scores, 'div', {className: 'score'});
    make(row, 'span', {textContent: word});
    make(row, 'div', {className: 'bar'}).style.width = 100 * Math.max(0, Math.min(1, score)) + '%';
    make(row, 'span', {textContent: score.toFixed(2)});
  }
}

function show() {
  find('pairs').textContent =
      pairs.length ? 'Written: ' + pairs.map(pair => pair.join(' → ')).join(', ') : 'Nothing is written yet.';
  memories.forEach(draw);
}
function write(key, value) {
  const sizes = putWords(run, key, value);
  run.write_pair(...sizes, Number(find('beta').value), Number(find('decay').value));
  pairs.push([key, value]);
}
function ask(key) {
  run.ask(...putWords(run, key));
  memories.forEach((memory, index) => showAnswer(memory, index, key));
}
// Calls f and shows what came of it, or why not.
function attempt(f) {
  find('trouble').textContent = '';
  try { f(); show(); } catch (error) { find('trouble').textContent = error.message; }
}
const word = id => find(id).value.trim().toLowerCase();

find('write').addEventListener('submit', event => {
  event.preventDefault();
  attempt(() => { write(word('key'), word('value')); ask(word('question')); });
});
find('ask').addEventListener('submit', event => {
  event.preventDefault();
  attempt(() => ask(word('question')));
});
find('example').addEventListener('click', () => attempt(() => {
  for (const pair of example) write(...pair);
  ask(word('question'));
}));
find('forget').addEventListener('click', () => attempt(() => {
  run.forget();
  pairs = [];
  ask(word('question'));
}));
for (const id of ['beta', 'decay'])
  find(id).addEventListener('input', () => {
    document.querySelector(`output[for=${id}]`).textContent = Number(find(id).value).toFixed(2);
  });
dark.addEventListener('change', show);
attempt(() => {});
