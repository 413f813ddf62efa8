// Plays the scenario in the module and compares with the scores of the native program.
//     node check_numbers.js FOLDER SCENARIO SCORES
'use strict';
const fs = require('fs'), path = require('path');
const [folder, scenario, scores] = process.argv.slice(2);
const {moduleOf, play} = require(path.resolve(folder, 'wasm.js'));
const base64 = fs.readFileSync(path.join(folder, 'words_wasm.js'), 'utf8').match(/'([^']+)'/)[1];
const lines = file => fs.readFileSync(file, 'utf8').trim().split('\n');
const native = lines(scores).map(line => line.trim().split(' ').map(Number));
const own = play(moduleOf(base64), lines(scenario));

let worst = own.length === native.length ? 0 : Infinity, count = 0;
own.forEach((row, i) => row.forEach((score, j) => {
  const difference = Math.abs(score - native[i][j]);
  worst = difference <= worst ? worst : difference;  // NaN is not smaller
  ++count;
}));
console.log(`${count} scores: the largest difference is ${worst}`);
process.exitCode = count > 0 && worst <= 1e-5 ? 0 : 1;
