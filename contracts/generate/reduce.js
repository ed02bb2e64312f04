// The reduction modulo p: twelve times two steps of Montgomery's by 2^256, in residues, and the ranges for which it is
// right. Writes the body of `GtResidues.reduceWith`.
"use strict";
const assert = require("assert");
const { P, R, M0, M1, M2, MODULI, OFFSET, inverse, mod } = require("./numbers");
const { Polynomial } = require("./polynomial");
const { Residues, Machine } = require("./machine");
const layout = require("./layout");

/** No coefficient of A or B is larger; what a reduction leaves is not, see below. */
const OPERAND = P + M0;
/** Sums of products T are at most this, and at least its negative: 12.1 p². */
const SUM = (121n * P * P) / 10n;

// With T + OFFSET positive, and q at most 2^256 − 1:
const least = OFFSET - SUM;
const leastU = least / M0;
const largestU = (OFFSET + SUM + (M0 - 1n) * P) / M0;
const largestV = (largestU + (M0 - 1n) * P) / M0;
assert(least >= 0n, "T + OFFSET may be negative");
assert(largestU < M1 * M2, "U is more than its residues modulo M1 and M2 tell");
assert(largestV <= OPERAND, "a reduction leaves more than an operand may be");
assert.equal(R, M0 * M0, "two steps divide by R");
// The claims in the comments of GtResidues.sol.
assert(10n * OFFSET > 124n * P * P && 10n * OFFSET < 126n * P * P, "OFFSET is not as GtResidues.sol says");
assert(10n * M0 * M1 * M2 > 276n * P * P);
assert(OPERAND * P <= SUM, "GtResidues.scale multiplies by a number below p");
assert(largestU < 1n << 511n && 10n * leastU * M0 > 3n * P * P && largestV < 2n * P, "U or V is not as it says");

/** That T stays in the range: `sums` are pairs of polynomials in the unknowns, `box` gives each unknown's interval. */
function checkSums(sums, box, what) {
  for (const sum of sums.flat()) {
    const [low, high] = sum.range(box);
    assert(-SUM <= low && high <= SUM, `${what}: sums of products leave ±12.1 p²`);
  }
}
const operandBox = () => [0n, OPERAND];
/** B may be a conjugate: its odd coefficients may be negative. */
const signedBox = () => [-OPERAND, OPERAND];

/** One coefficient. The words of T and A are at `t(r)` and `a(r)`. */
function coefficient(machine, t, a) {
  const [r0, r1, r2] = [0, 1, 2].map((r) => new Residues(r));
  const np = r0.constant("NEGATED_INVERSE", "np");
  const [p1, p2a, p2b] = [r1.constant("P_1", "p1"), r2.constant("P_2A"), r2.constant("P_2B")];
  const unknown = Polynomial.unknown;
  /** (x − x1)/M1 modulo M2, from x1 = x mod M1 and the scaled residue x2. */
  const lifted = (x2, x1, lift) => r2.plus(r2.times(x2, r2.constant(lift)), r2.times(x1, r2.constant("LIFT_1")));
  const expectLifted = (word, x, x1) => r2.expect(word, x.minus(x1).scaled(inverse(M1, M2)), "mixed radix");

  machine.assembly(() => {
    // q = −(T + OFFSET)/p mod 2^256
    for (const r of [0, 1, 2]) {
      const scale = r === 2 ? inverse(R * R, M2) : 1n;
      machine.write(t(r), { high: MODULI[r] - 1n, meaning: unknown("T").scaled(scale) });
    }
    const positive = unknown("T").plus(Polynomial.constant(OFFSET));
    let q = machine.let("q", r0.times(r0.lazy(machine.load(t(0)), r0.constant("OFFSET_0")), np));
    r0.expect(q, positive.scaled(-inverse(P, M0)), "q");
    q = q.as(unknown("q"));

    // U = (T + OFFSET + q·p) / 2^256, scaled by 2^−768 modulo M2
    const u = positive.plus(unknown("q").scaled(P));
    let u1 = machine.let("u1", r1.lazy(machine.load(t(1)), r1.times(q, p1)));
    let u2 = machine.let("u2", r2.plus(r2.lazy(machine.load(t(2)), r2.constant("OFFSET_2")), r2.times(q, p2a)));
    r1.expect(u1, u.scaled(inverse(M0, M1)), "u1");
    r2.expect(u2, u.scaled(inverse(M0, M2) * inverse(M0 ** 3n, M2)), "u2");
    assert(u1.high <= leastU, "u1 may be above U");
    u1 = u1.as(unknown("u1"));
    u2 = u2.as(unknown("U").scaled(inverse(M0 ** 3n, M2)));

    // q = −U/p mod 2^256 with U = u1 + M1·h
    const h = lifted(u2, u1, "LIFT_U");
    expectLifted(h, unknown("U"), unknown("u1"));
    q = machine.set("q", r0.lazy(r0.times(u1, np), r0.times(h.as(unknown("h")), r0.constant("M1_NEGATED_INVERSE"))));
    r0.expect(q, unknown("u1").plus(unknown("h").scaled(M1)).scaled(-inverse(P, M0)), "second q");
    q = q.as(unknown("q"));

    // V = (U + q·p) / 2^256, scaled by 2^−512 modulo M2
    const v = unknown("U").plus(unknown("q").scaled(P));
    let v1 = machine.let("v1", r1.plus(u1.as(unknown("U")), r1.times(q, p1)));
    let v2 = machine.let("v2", r2.plus(u2, r2.times(q, p2b)));
    r1.expect(v1, v.scaled(inverse(M0, M1)), "v1");
    r2.expect(v2, v.scaled(inverse(M0, M2) * inverse(R, M2)), "v2");
    assert(v1.high < M1 && v2.high < M2, "a word of V is not reduced");
    v1 = v1.as(unknown("v1"));
    v2 = v2.as(unknown("V").scaled(inverse(R, M2)));

    // V mod 2^256 with V = v1 + M1·h
    const g = lifted(v2, v1, "LIFT_V");
    expectLifted(g, unknown("V"), unknown("v1"));
    const v0 = r0.lazy(v1, r0.times(g.as(unknown("h")), r0.constant("M1", "m1")));
    r0.expect(v0, unknown("v1").plus(unknown("h").scaled(mod(M1, M0))), "v0");
    machine.store(a(0), v0);
    machine.store(a(1), v1);
    machine.store(a(2), v2);
  });
}

function reduction() {
  const machine = new Machine();
  for (let i = 0; i < 12; i++) {
    const place = (base) => (r) => base + layout.WORD * (12 * r + i);
    coefficient(machine, place(layout.at.T), place(layout.at.A));
  }
  return machine;
}

module.exports = { reduction, checkSums, operandBox, signedBox, OPERAND };
