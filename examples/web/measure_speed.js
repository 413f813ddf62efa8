// The time of a scan in the module, in nanoseconds a token at d = 64 and 128.   node measure_speed.js MODULE
'use strict';
const fs = require('fs'), path = require('path');
const {moduleOf} = require(path.join(__dirname, 'wasm.js'));
const run = moduleOf(fs.readFileSync(process.argv[2]).toString('base64'));

// An engine compiles quickly at first, and replaces that by better code between calls.
async function best(d) {
  let least = Infinity;
  for (let i = 0; i < 20; ++i) {
    least = Math.min(least, run.nanoseconds(d));
    await new Promise(next => setTimeout(next, 10));
  }
  return least.toFixed(0);
}

(async () => console.log(await best(64), await best(128)))();
