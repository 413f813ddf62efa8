// A module that was compiled for WebAssembly: what it exports, with words as text.
'use strict';

function moduleOf(base64) {
  const bytes = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  // The module opens no file and prints nothing; of a system it asks for the time, and all else is an error.
  let run;
  const clock_time_get = (_, __, to) => {
    new DataView(run.memory.buffer).setBigUint64(to, BigInt(Math.round(performance.now() * 1e6)), true);
    return 0;
  };
  const refuse = name => () => { throw new Error(`the module calls ${String(name)}`); };
  const system = new Proxy({clock_time_get}, {get: (known, name) => known[name] ?? refuse(name)});
  const imports = {wasi_snapshot_preview1: system, env: system};
  run = new WebAssembly.Instance(new WebAssembly.Module(bytes), imports).exports;
  run._initialize();
  return run;
}

// Puts words into the module's buffer, one behind the other, and returns their sizes in bytes.
function putWords(run, ...words) {
  const parts = words.map(word => new TextEncoder().encode(word));
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  if (size > run.text_size()) throw new RangeError(`the words take ${size} bytes, expected at most ${run.text_size()}`);
  let at = run.text_buffer();
  for (const part of parts) {
    new Uint8Array(run.memory.buffer).set(part, at);
    at += part.length;
  }
  return parts.map(part => part.length);
}

// The numbers of a memory, a column after the other.
function numbersOf(run, memory) {
  const [rows, columns] = [run.rows(memory), run.columns(memory)];
  const values = new Float32Array(run.memory.buffer, run.numbers(memory), rows * columns);
  return {rows, columns, values};
}

// What a scenario gives: the scores of all values for each question.
function play(run, lines) {
  const values = [], answers = [];
  run.forget();
  for (const line of lines) {
    const [action, key, value, beta, decay] = line.split(' ');
    if (action === 'write') {
      run.write_pair(...putWords(run, key, value), Number(beta), Number(decay));
      if (!values.includes(value)) values.push(value);
    } else {
      run.ask(...putWords(run, key));
      for (let memory = 0; memory < 4; ++memory)
        answers.push(values.map(word => run.score(memory, ...putWords(run, word))));
    }
  }
  return answers;
}

if (typeof module !== 'undefined') module.exports = {moduleOf, putWords, play};
