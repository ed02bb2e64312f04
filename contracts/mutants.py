"""Mutants of one contract: makes them with Slither's operators and runs the contract's tests on each.

Called by scripts/mutants, from a folder with copies of `contracts` named 0, 1, ... in it: one job in each.
slither-mutate itself compiles the whole project twice for each mutant; here the tests' own run says whether it compiles.
"""

import argparse
import atexit
import glob
import json
import os
import queue
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from slither import Slither
from slither.core.expressions.binary_operation import BinaryOperation
from slither.slithir.operations import Binary
from slither.tools.mutator.mutators import all_mutators
from slither.tools.mutator.mutators.abstract_mutator import AbstractMutator

# First whether a statement is run at all, then whether it matters; where it does not, its details need no look.
FIRST = ["RR", "CR"]
# Narrower types and memory for storage: what differs lies beyond 2^32 blocks or 2^127 wei, or nowhere.
LEFT_OUT = ["SBR"]
OUTCOMES = ["caught", "without_end", "does_not_compile", "survived"]


def alternatives(pattern):
    """`a{b,c}` as `ab` and `ac`: forge's pattern, without braces."""
    braces = re.search(r"\{([^}]*)\}", pattern)
    if braces is None:
        return [pattern]
    start, end = pattern[:braces.start()], pattern[braces.end():]
    return [one for choice in braces[1].split(",") for one in alternatives(start + choice + end)]


def prune(folder, file, tests):
    """Leaves the contract, its tests and what they import: forge reads all that is there for each mutant."""
    todo = [file, *(Path(name) for one in alternatives(tests) for name in glob.glob(one, root_dir=folder))]
    kept = set()
    while todo:
        path = todo.pop()
        if path in kept:
            continue
        kept.add(path)
        imports = re.findall(r'from "(\.[^"]+)"', (folder / path).read_text())
        todo += [Path(os.path.normpath(path.parent / name)) for name in imports]
    for part in ["src", "test", "script"]:
        for path in (folder / part).rglob("*.sol"):
            if path.relative_to(folder) not in kept:
                path.unlink()


def compiler(folder):
    """One that stays, for this folder: (its process, what forge's environment needs)."""
    folder = folder.resolve()
    environment = {**os.environ, "SOLC_WARM": str(folder / "solc.sock"), "FOUNDRY_SOLC": str(folder / "solc-warm")}
    process = subprocess.Popen([folder / "solc-warm", "--serve"], env=environment, stdout=subprocess.PIPE)
    if process.stdout.readline() != b"ready\n":
        sys.exit("the compiler did not start")
    return process, environment


class Comparisons(AbstractMutator):
    """One comparison for another. Slither's own splits the statement's text at the sign: it garbles what has two of the
    same, and gives up over all of a contract where some statement has none, as assembly has."""

    NAME = "ROR"
    HELP = "Relational Operator Replacement"
    # The nearest two: a test that tells these from the comparison tells the others, too, and whether it matters at all is
    # asked by operators that put true or false for a condition.
    NEAREST = {"<": ["<=", "!="], ">": [">=", "!="], "<=": ["<", "=="], ">=": [">", "=="], "==": ["<=", ">="], "!=": ["<", ">"]}

    def _mutate(self):
        found = []
        for function in self.contract.functions_and_modifiers_declared:
            expressions = {ir.expression for node in function.nodes for ir in node.irs if isinstance(ir, Binary)}
            for expression in expressions:
                if not isinstance(expression, BinaryOperation):
                    continue
                left, right = expression.expression_left.source_mapping, expression.expression_right.source_mapping
                source = Path(left.filename.absolute).read_bytes()
                start, end = left.start + left.length, right.start
                sign = re.fullmatch(rb"([\s)]*)([<>]=?|[=!]=)([\s(]*)", source[start:end])
                if sign is None:
                    continue
                before, old, after = (part.decode() for part in sign.groups())
                start, end = left.start, right.start + right.length
                head, tail = source[start:left.start + left.length].decode(), source[right.start:end].decode()
                text = source[start:end].decode()
                for new in self.NEAREST[old]:
                    found.append({
                        "start": start,
                        "end": end,
                        "old_string": text,
                        "new_string": f"{head}{before}{new}{after}{tail}",
                        "line_number": left.lines[0],
                    })
        return {"patches": {"": found}}


def operators():
    found = [op for op in vars(all_mutators).values() if isinstance(op, type) and issubclass(op, AbstractMutator)]
    found = {op.NAME: op for op in found if op.NAME and op.NAME not in LEFT_OUT}
    found[Comparisons.NAME] = Comparisons
    return [found.pop(name) for name in FIRST] + [found[name] for name in sorted(found)]


def chosen(names):
    """All operators, or those of the list, in their order."""
    every = operators()
    if names is None:
        return every
    unknown = set(names.split(",")) - {operator.NAME for operator in every}
    if unknown:
        sys.exit(f"no such operator: {', '.join(sorted(unknown))}")
    return [operator for operator in every if operator.NAME in names.split(",")]


def patches(unit, contract, operator):
    """The places that an operator changes: (start, end, line, old, new), bytes of the file."""
    try:
        made = operator(unit, 0, "", "", contract, None, False, Path("."), [])._mutate()
    except Exception as error:
        # Some look for Solidity in what is assembly, or for the bounds of a type that has none, and give up.
        print(f"{contract.name} {operator.NAME}: left out, the operator fails: {error!r}", flush=True)
        return []
    found = {(p["start"], p["end"], p["line_number"], p["old_string"], p["new_string"])
             for of_file in made.get("patches", {}).values() for p in of_file}
    return sorted(patch for patch in found if not same(*patch[3:]))


def same(old, new):
    """Nothing that these contracts compare with 0 is signed."""
    return new in [old, old.replace("== 0", "<= 0"), old.replace("!= 0", "> 0")]


def judge(folder, environment, file, source, patch, tests, without, seconds):
    start, end, _, _, new = patch
    (folder / file).write_bytes(source[:start] + new.encode() + source[end:])
    command = ["forge", "test", "--fail-fast", "--match-path", tests]
    if without:
        command += ["--no-match-test", without]
    # Tests that find the contract by its name are not compiled anew, but do not see every revert of a constructor: what
    # survives them runs again as the tests are.
    for linked in ["true", "false"]:
        environment = {**environment, "FOUNDRY_DYNAMIC_TEST_LINKING": linked}
        try:
            run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, env=environment)
        except subprocess.TimeoutExpired:
            return "without_end"
        if run.returncode != 0:
            break
    else:
        return "survived"
    said = run.stdout + run.stderr
    if "Compiler run failed" in said:
        return "does_not_compile"
    if "Failing tests" not in said:
        sys.exit(f"the tests did not run:\n{said}")
    return "caught"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contract", help="its name, and its file's: src/NAME.sol or src/libraries/NAME.sol")
    parser.add_argument("tests", help="files of tests, as forge's --match-path takes them")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a mutant")
    parser.add_argument("--again", type=Path, help="a table: only what survived there is tried")
    parser.add_argument("--operators", help="only these, with commas: ROR,UOR")
    parser.add_argument("--without", help="a pattern of tests that hold with the optimizer alone: gas, size of code")
    parser.add_argument("--out", type=Path, required=True, help="the table as JSON")
    arguments = parser.parse_args()
    wanted_operators = chosen(arguments.operators)

    places = [arguments.folder / str(job) for job in range(arguments.jobs)]
    first = places[0]
    file = Path("src") / f"{arguments.contract}.sol"
    if not (first / file).exists():
        file = Path("src/libraries") / file.name
    source = (first / file).read_bytes()
    for place in places:
        prune(place, file, arguments.tests)
    units = Slither(str(first), compile_force_framework="foundry").compilation_units
    unit, contract = next((unit, contract) for unit in units for contract in unit.contracts
                          if contract.name == arguments.contract)
    free = queue.Queue()
    for place in places:
        process, environment = compiler(place)
        atexit.register(process.kill)
        free.put((place, environment))

    def run(patch):
        place, environment = free.get()
        try:
            return judge(place, environment, file, source, patch, arguments.tests, arguments.without, arguments.timeout)
        finally:
            (place / file).write_bytes(source)
            free.put((place, environment))

    if run((0, 0, 0, "", "")) != "survived":
        sys.exit("the tests fail without any change")

    left = None
    if arguments.again:
        before = json.loads(arguments.again.read_text())["mutants"]
        left = {(row["operator"], row["line"], row["old"], row["new"]) for row in before if row["outcome"] == "survived"}

    def wanted(name, patch):
        _, _, line, old, new = patch
        return line not in settled and (left is None or (name, line, old, new) in left)

    rows, settled = [], set()

    def one(operator, patch):
        outcome = run(patch)
        _, _, line, old, new = patch
        if outcome == "survived":
            print(f"  {file}:{line} {operator} {' '.join(old.split())!r} to {' '.join(new.split())!r}", flush=True)
        return {"line": line, "operator": operator, "old": old, "new": new, "outcome": outcome}

    for operator in wanted_operators:
        todo = [patch for patch in patches(unit, contract, operator) if wanted(operator.NAME, patch)]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            found = list(pool.map(lambda patch: one(operator.NAME, patch), todo))
        rows += found
        if operator.NAME in FIRST:
            settled |= {row["line"] for row in found if row["outcome"] == "survived"}
        print(f"{arguments.contract} {operator.NAME}: {len(found)}, {len(rows)} in all", flush=True)
        # After each operator: a run that is cut off leaves what it found.
        counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in OUTCOMES}
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        table = {"contract": arguments.contract, **counts, "mutants": rows}
        arguments.out.write_text(json.dumps(table, indent=1))
    print(f"{arguments.contract}: {len(rows)} mutants, {counts}")


main()
