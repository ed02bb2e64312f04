// What the generators write with. Every expression carries three things: its text, the largest word it can be, and the
// polynomial it is congruent to. An addition that could pass 2^256, a negation that could fall below zero, a word read
// before it was written or after it changed, all of that stops the generator.
"use strict";
const assert = require("assert");
const { M0, MODULI, SCALES, ROOTS, CONSTANTS, mod, inverse, hex } = require("./numbers");
const { Polynomial } = require("./polynomial");
const layout = require("./layout");

/** An expression: `tree` is a string or { call, args }; `reads` are the places whose content it takes, by version. */
class Expression {
  constructor(tree, high, meaning, reads = []) {
    assert(high < M0, "an expression is one word");
    Object.assign(this, { tree, high, meaning, reads });
  }
  /** The same word with another meaning, for another modulus. */
  as(meaning) {
    return new Expression(this.tree, this.high, meaning, this.reads);
  }
}

const call = (name, args, high, meaning) =>
  new Expression({ call: name, args: args.map((a) => a.tree ?? a) }, high, meaning, args.flatMap((a) => a.reads ?? []));

/** Arithmetic on words modulo M_r. Modulo M0 = 2^256 words wrap around, and that is the reduction. */
class Residues {
  constructor(r) {
    this.r = r;
    this.modulus = MODULI[r];
    this.symbol = `m${r}`; // the parameter that holds the modulus
    this.reduced = this.modulus - 1n;
  }
  constant(name, symbol = name) {
    const [value] = CONSTANTS[name];
    return new Expression(symbol, value, Polynomial.constant(value));
  }
  times(a, b) {
    const meaning = a.meaning.times(b.meaning).modulo(this.modulus);
    return this.r === 0 ? call("mul", [a, b], this.reduced, meaning) : call("mulmod", [a, b, this.symbol], this.reduced, meaning);
  }
  /** The sum as it is, not reduced: it must fit a word. */
  lazy(a, b) {
    const high = this.r === 0 ? this.reduced : a.high + b.high;
    assert(high < M0, `a sum modulo M${this.r} may reach ${hex(high)}`);
    return call("add", [a, b], high, a.meaning.plus(b.meaning).modulo(this.modulus));
  }
  /** The sum, reduced. */
  plus(a, b) {
    if (this.r === 0) return this.lazy(a, b);
    return call("addmod", [a, b, this.symbol], this.reduced, a.meaning.plus(b.meaning).modulo(this.modulus));
  }
  /** a − b, modulo M0 only. */
  minus(a, b) {
    assert.equal(this.r, 0);
    return call("sub", [a, b], this.reduced, a.meaning.minus(b.meaning).modulo(this.modulus));
  }
  /** M − a, or −a modulo M0. */
  negated(a) {
    const meaning = a.meaning.scaled(-1n).modulo(this.modulus);
    if (this.r === 0) return call("sub", ["0", a], this.reduced, meaning);
    assert(a.high <= this.modulus, `M${this.r} minus a word of up to ${hex(a.high)}`);
    return call("sub", [this.symbol, a], this.modulus, meaning);
  }
  expect(word, meaning, what) {
    assert(word.meaning.modulo(this.modulus).equals(meaning.modulo(this.modulus)), `${what}: not the residue modulo M${this.r}`);
  }
}

/** Memory and variables of one function, and the statements written so far. */
class Machine {
  constructor() {
    this.places = new Map(); // address or name → { high, meaning }
    this.statements = [];
  }
  /** What a word there is from now on. */
  write(place, { high, meaning }) {
    this.places.set(place, { high, meaning });
  }
  read(place, tree) {
    const version = this.places.get(place);
    assert(version, `${typeof place === "number" ? hex(place) : place} is read before it is written`);
    return new Expression(tree, version.high, version.meaning, [[place, version]]);
  }
  /** An address, constant or a number of bytes behind the variable `base` (whose value the generator knows). */
  address(address) {
    if (typeof address === "number") return [address, hex(address)];
    return [this.places.get(address.base).value + address.offset, { call: "add", args: [address.base, hex(address.offset)] }];
  }
  /** Gives a variable that holds an address its value. */
  pointer(name, value) {
    this.places.set(name, { value });
  }
  current(expression) {
    for (const [place, version] of expression.reads) {
      assert.equal(this.places.get(place), version, "a place changed before its use");
    }
    return expression;
  }
  load(address) {
    const [place, tree] = this.address(address);
    return this.read(place, { call: "mload", args: [tree] });
  }
  store(address, expression) {
    const [place, tree] = this.address(address);
    this.statements.push({ call: "mstore", args: [tree, this.current(expression).tree] });
    this.write(place, expression);
  }
  /** Declares a variable of an assembly block. */
  let(name, expression) {
    this.statements.push({ let: name, tree: this.current(expression).tree });
    this.write(name, expression);
    return this.read(name, name);
  }
  set(name, expression) {
    this.statements.push({ set: name, tree: this.current(expression).tree });
    this.write(name, expression);
    return this.read(name, name);
  }
  text(...lines) {
    this.statements.push(...lines.map((text) => ({ text })));
  }
  nested(kind, body) {
    const outer = this.statements;
    this.statements = [];
    const result = body();
    outer.push({ [kind]: this.statements });
    this.statements = outer;
    return result;
  }
  /** An assembly block of its own. */
  assembly(body) {
    return this.nested("assembly", body);
  }
  scope(body) {
    return this.nested("scope", body);
  }
}

/** Unknown parts of A's or B's coefficient k: "a0x", "a0y", … */
const parts = (operand, k) => ["x", "y"].map((part) => Polynomial.unknown(`${operand}${k}${part}`));
/** The value at i (side 0) or −i (side 1) modulo M_r. */
const valueAt = ([x, y], r, side) => x.plus(y.scaled(side === 0 ? ROOTS[r] : -ROOTS[r]));

/** Puts A's residues modulo M_r into memory. */
function placeA(machine, r) {
  for (let k = 0; k < 6; k++) {
    parts("a", k).forEach((part, i) => {
      machine.write(layout.coefficient(layout.at.A, r, k, i), { high: MODULI[r] - 1n, meaning: part.scaled(SCALES[r]) });
    });
  }
}

/** What an operand for `coefficients` is: words by address. `high` may be M: a conjugate has M − 0. */
function operand(base, r, coefficients) {
  const words = [];
  coefficients.forEach((pair, k) => {
    for (const side of [0, 1]) {
      if (r === 0) {
        words.push([layout.coefficient(base, r, k, side), { high: M0 - 1n, meaning: pair[side] }]);
      } else {
        const meaning = valueAt(pair, r, side).scaled(SCALES[r] * inverse(2n, MODULI[r]));
        words.push([layout.value(base, r, k, side), { high: MODULI[r], meaning: meaning.modulo(MODULI[r]) }]);
      }
    }
  });
  return words;
}
const UNKNOWN_B = [0, 1, 2, 3, 4, 5].map((k) => parts("b", k));
function placeB(machine, r) {
  for (const [place, word] of operand(layout.at.B, r, UNKNOWN_B)) machine.write(place, word);
}

/** Compares the operand in memory at `base` with what it should be. */
function expectOperand(machine, base, r, coefficients) {
  for (const [place, word] of operand(base, r, coefficients)) {
    const found = machine.read(place, "");
    assert(found.high <= word.high, "an operand's word is too large");
    new Residues(r).expect(found, word.meaning, `operand at ${hex(place)}`);
  }
}

/** Compares T in memory with the integers `sums` (pairs of polynomials) that it should be the residues of. */
function expectSums(machine, r, sums) {
  const arithmetic = new Residues(r);
  sums.forEach((pair, k) =>
    pair.forEach((sum, part) => {
      const found = machine.read(layout.coefficient(layout.at.T, r, k, part), "");
      assert(found.high <= arithmetic.reduced, "a word of T is not reduced");
      arithmetic.expect(found, sum.scaled(mod(SCALES[r] * SCALES[r], MODULI[r])), `T, w^${k}`);
    }),
  );
}

module.exports = { Expression, Residues, Machine, UNKNOWN_B, placeA, placeB, valueAt, expectOperand, expectSums };
