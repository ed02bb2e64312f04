// What the generator must refuse: each guard of machine.js and polynomial.js, provoked.
"use strict";
const assert = require("node:assert");
const { test } = require("node:test");
const { M0, M1, P } = require("./numbers");
const { Polynomial } = require("./polynomial");
const { Residues, Machine, placeA, placeB, expectSums, expectOperand, UNKNOWN_B } = require("./machine");
const { checkSums, operandBox, signedBox, OPERAND } = require("./reduce");
const { at, coefficient } = require("./layout");
const { body } = require("./format");

const unknown = Polynomial.unknown;
/** A machine with A's residues modulo M_r, and A's first word. */
function withA(r) {
  const machine = new Machine();
  placeA(machine, r);
  return { machine, R: new Residues(r), a: machine.load(coefficient(at.A, r, 0, 0)) };
}

test("a lazy sum of three residues modulo M1 fits a word, a fourth does not, nor do two modulo M2", () => {
  const { R, a } = withA(1);
  const three = R.lazy(a, R.lazy(a, a));
  assert.equal(three.high, 3n * (M1 - 1n));
  assert.throws(() => R.lazy(a, three), /a sum modulo M1 may reach/);
  const two = withA(2);
  assert.throws(() => two.R.lazy(two.a, two.a), /a sum modulo M2 may reach/);
});

test("only what is at most the modulus is negated", () => {
  const { R, a } = withA(1);
  assert.equal(R.negated(R.negated(R.plus(a, a))).high, M1);
  assert.throws(() => R.negated(R.lazy(a, a)), /M1 minus a word of up to/);
});

test("a word is read after it was written, and used before it changes", () => {
  const { machine, R, a } = withA(0);
  assert.throws(() => machine.load(at.T), /0x680 is read before it is written/);
  const sum = R.lazy(a, a);
  machine.store(coefficient(at.A, 0, 0, 0), a);
  assert.throws(() => machine.store(at.T, sum), /changed before its use/);
  const x = machine.let("x", machine.load(at.A));
  machine.set("x", R.lazy(x, x));
  assert.throws(() => machine.store(at.T, x), /changed before its use/);
});

test("a wrong sum, one that is not reduced and a wrong operand are found", () => {
  for (const r of [0, 1, 2]) {
    const { machine, R, a } = withA(r);
    machine.store(coefficient(at.T, r, 0, 0), R.times(a, a));
    expectSums(machine, r, [[unknown("a0x").times(unknown("a0x"))]]);
    assert.throws(() => expectSums(machine, r, [[unknown("a0x").times(unknown("a0y"))]]), /not the residue modulo/);
    placeB(machine, r);
    expectOperand(machine, at.B, r, UNKNOWN_B);
    assert.throws(() => expectOperand(machine, at.B, r, UNKNOWN_B.map(([x, y]) => [y, x])), /not the residue modulo/);
  }
  const { machine, R, a } = withA(1);
  machine.store(coefficient(at.T, 1, 0, 0), R.lazy(a, a));
  assert.throws(() => expectSums(machine, 1, [[unknown("a0x").scaled(2n)]]), /not reduced/);
});

test("the range of a polynomial holds its values, and is the corners' where it is linear in each unknown", () => {
  const [x, y, z] = ["x", "y", "z"].map(unknown);
  const box = (name) => ({ x: [-3n, 2n], y: [0n, 4n], z: [1n, 5n] })[name];
  const between = ([low, high]) => Array.from({ length: Number(high - low) + 1 }, (_, i) => low + BigInt(i));
  const cases = [
    [x.times(y).minus(y.times(z)), (a, b, c) => a * b - b * c],
    [x.times(x).minus(y), (a, b) => a * a - b],
    [x.times(z).plus(x.scaled(-7n)), (a, b, c) => a * c - 7n * a],
    [y.times(z).plus(Polynomial.constant(9n)), (a, b, c) => b * c + 9n],
  ];
  for (const [polynomial, value] of cases) {
    const [low, high] = polynomial.range(box);
    for (const a of between(box("x"))) {
      for (const b of between(box("y"))) {
        for (const c of between(box("z"))) assert(low <= value(a, b, c) && value(a, b, c) <= high);
      }
    }
  }
  assert.deepEqual(x.times(y).minus(y.times(z)).range(box), [-32n, 4n]);
  assert.deepEqual(x.times(x).range(box), [0n, 9n]);
});

test("sums of products that a reduction does not take are refused", () => {
  const product = unknown("x").times(unknown("y"));
  checkSums([[product.scaled(12n)]], operandBox, "twelve");
  checkSums([[product.scaled(12n)]], signedBox, "twelve of either sign");
  assert.throws(() => checkSums([[product.scaled(13n)]], operandBox, "thirteen"), /thirteen: sums of products leave/);
  assert.equal(OPERAND, P + M0);
});

test("lines are broken as forge fmt does", () => {
  const { machine, R, a } = withA(2);
  machine.assembly(() => {
    const product = R.times(a, R.times(a, a));
    machine.let("x", R.plus(product, R.plus(product, product)));
  });
  assert.equal(
    body(machine),
    `        assembly ("memory-safe") {
            let x :=
                addmod(
                    mulmod(mload(0x500), mulmod(mload(0x500), mload(0x500), m2), m2),
                    addmod(
                        mulmod(mload(0x500), mulmod(mload(0x500), mload(0x500), m2), m2),
                        mulmod(mload(0x500), mulmod(mload(0x500), mload(0x500), m2), m2),
                        m2
                    ),
                    m2
                )
        }`,
  );
});
