// The board of board.py for Node: the same files, written every millisecond, since Node has no memory maps.
import fs from "node:fs";

const directory = process.env.BENCH_BOARD;
const PATIENCE = 30;
const marks = new Float64Array(2);
const bytes = Buffer.from(marks.buffer);
let file = null;
let changed = false;

export const now = () => (performance.timeOrigin + performance.now()) / 1000;

function write() {
  if (changed) {
    changed = false;
    fs.writeSync(file, bytes, 0, bytes.length, 0);
  }
}

export function mark(sent) {
  const at = now();
  if (file === null) {
    file = fs.openSync(`${directory}/marks-${process.pid}`, "w+");
    setInterval(write, 1).unref();
  }
  if (!marks[0]) marks[1] = at;
  marks[0]++;
  changed = true;
  if (sent) {
    fs.appendFileSync(`${directory}/samples-${process.pid}`, `${(at - sent).toFixed(7)}\n`);
    write();
  }
}

function total() {
  const files = fs.readdirSync(directory).filter((name) => name.startsWith("marks-"));
  const texts = files.map((name) => fs.readFileSync(`${directory}/${name}`)).filter((text) => text.length >= 8);
  return texts.reduce((sum, text) => sum + text.readDoubleLE(0), 0);
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export async function pickUp(count, enqueue) {
  const before = total();
  for (let number = 0; number < count; number++) {
    await enqueue(now());
    const until = now() + PATIENCE;
    while (total() <= before + number) {
      if (now() > until) throw new Error(`job ${number} was not picked up within ${PATIENCE} s`);
      await pause(1);
    }
    await pause(5 + Math.random() * 20);
  }
}
