// Polynomials in named unknowns with integer coefficients: what a word of the generated code means, and what it should.
"use strict";

/** Monomial ("" for 1, "a0x·b0x", "a0x·a0x") → coefficient; zeros are left out. */
class Polynomial {
  constructor(terms = []) {
    this.terms = new Map();
    for (const [monomial, c] of terms) {
      const sum = (this.terms.get(monomial) ?? 0n) + c;
      if (sum === 0n) this.terms.delete(monomial);
      else this.terms.set(monomial, sum);
    }
  }
  static constant(c) {
    return new Polynomial([["", c]]);
  }
  static unknown(name) {
    return new Polynomial([[name, 1n]]);
  }
  /** Without unknowns: the number. */
  value() {
    return this.terms.get("") ?? 0n;
  }
  plus(other) {
    return new Polynomial([...this.terms, ...other.terms]);
  }
  minus(other) {
    return this.plus(other.scaled(-1n));
  }
  scaled(c) {
    return new Polynomial([...this.terms].map(([monomial, d]) => [monomial, c * d]));
  }
  times(other) {
    const terms = [];
    for (const [a, c] of this.terms) {
      for (const [b, d] of other.terms) terms.push([[...factors(a), ...factors(b)].sort().join("·"), c * d]);
    }
    return new Polynomial(terms);
  }
  /** Coefficients in 0 … m − 1. */
  modulo(m) {
    return new Polynomial([...this.terms].map(([monomial, c]) => [monomial, ((c % m) + m) % m]));
  }
  equals(other) {
    return this.minus(other).terms.size === 0;
  }

  /**
   * An interval that holds the value when each unknown lies in its interval `box(name)`. Terms that share unknowns
   * in products of two are taken together: such a sum is linear in each unknown, so a corner has the extremes.
   */
  range(box) {
    const groups = []; // [names, terms: names of the factors and coefficient]
    for (const [monomial, c] of this.terms) {
      const names = factors(monomial);
      let group = [new Set(names), [[names, c]]];
      if (names.length === 2 && names[0] !== names[1]) {
        for (const other of groups.filter((g) => g.linear && names.some((name) => g[0].has(name)))) {
          group = [new Set([...group[0], ...other[0]]), [...group[1], ...other[1]]];
          groups.splice(groups.indexOf(other), 1);
        }
        group.linear = true;
      }
      groups.push(group);
    }
    let [low, high] = [0n, 0n];
    for (const [names, terms] of groups) {
      const at = (corner) => terms.reduce((sum, [of, c]) => sum + of.reduce((product, name) => product * corner[name], c), 0n);
      const values = corners([...names], box).map(at);
      // A square is least inside its interval when its unknown may be of either sign.
      if (terms[0][0].length === 2 && names.size === 1) values.push(0n);
      low += values.reduce((a, b) => (a < b ? a : b));
      high += values.reduce((a, b) => (a > b ? a : b));
    }
    return [low, high];
  }
}

const factors = (monomial) => (monomial === "" ? [] : monomial.split("·"));

function corners(names, box) {
  return names.reduce((all, name) => all.flatMap((corner) => box(name).map((v) => ({ ...corner, [name]: v }))), [{}]);
}

/** F_p2 over polynomials, pairs [x, y] of x + y·u with u² = −1. */
const F2 = {
  element: (name) => [Polynomial.unknown(`${name}x`), Polynomial.unknown(`${name}y`)],
  constant: ([x, y]) => [Polynomial.constant(x), Polynomial.constant(y)],
  plus: (a, b) => [a[0].plus(b[0]), a[1].plus(b[1])],
  times: (a, b) => [a[0].times(b[0]).minus(a[1].times(b[1])), a[0].times(b[1]).plus(a[1].times(b[0]))],
  scaled: (a, c) => [a[0].scaled(c), a[1].scaled(c)],
  timesXi: (a) => [a[0].minus(a[1]), a[0].plus(a[1])],
  conjugate: (a) => [a[0], a[1].scaled(-1n)],
};

module.exports = { Polynomial, F2 };
