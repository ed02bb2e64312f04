//! What came of the cases: printed as each ends, and written as one file.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// Gas of the steps of a case, in order; a case of one step has an empty name for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gas(Vec<(&'static str, u64)>);

impl Gas {
    /// Notes the gas of a step.
    pub fn step(&mut self, name: &'static str, gas: u64) {
        self.0.push((name, gas));
    }

    fn json(&self) -> Value {
        match self.0.as_slice() {
            [("", gas)] => json!(gas),
            steps => {
                steps.iter().map(|(name, gas)| ((*name).to_owned(), json!(gas))).collect::<Map<_, _>>().into()
            }
        }
    }
}

/// How a case ended.
pub type Outcome = Result<Gas>;

/// All cases so far.
#[derive(Debug, Default)]
pub struct Report {
    cases: Map<String, Value>,
    problems: Vec<String>,
}

impl Report {
    /// Takes and prints how a case ended, and the alarms that fired meanwhile. `logs` is where the logs of its network are.
    pub fn case(
        &mut self,
        name: &str,
        seconds: f64,
        outcome: Outcome,
        alarms: &BTreeSet<String>,
        logs: &Path,
    ) {
        let (text, gas) = match outcome {
            Ok(gas) => ("the attack failed".to_owned(), gas),
            Err(error) => {
                let text = format!("NOT AS IT MUST BE: {error:#}");
                self.problems.push(format!("{name}: {error:#}; logs: {}", logs.display()));
                (text, Gas::default())
            }
        };
        println!("{name:<24} {seconds:6.1} s  {text}");
        if !alarms.is_empty() {
            let alarms: Vec<&str> = alarms.iter().map(String::as_str).collect();
            println!("{:<24}           alarms: {}", "", alarms.join(", "));
        }
        for (step, gas) in &gas.0 {
            println!("{:<24}           {:>10} gas  {step}", "", gas);
        }
        self.cases.insert(name.to_owned(), json!({ "outcome": text, "gas": gas.json(), "alarms": alarms }));
    }

    /// Something that is no case went wrong.
    pub fn problem(&mut self, what: String) {
        println!("{what}");
        self.problems.push(what);
    }

    /// What is not as it must be.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, serde_json::to_vec_pretty(&self.cases)?)
            .with_context(|| format!("{}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_is_a_number_and_several_are_named() {
        let mut gas = Gas::default();
        gas.step("", 7);
        assert_eq!(gas.json(), json!(7));
        let mut gas = Gas::default();
        gas.step("commit", 1);
        gas.step("challenge", 2);
        assert_eq!(gas.json(), json!({ "commit": 1, "challenge": 2 }));
    }

    #[test]
    fn a_failing_case_is_a_problem_and_says_where_to_look() {
        let mut report = Report::default();
        let alarms = BTreeSet::from(["SequencerDown".to_owned()]);
        report.case("good", 1.0, Ok(Gas::default()), &alarms, Path::new("logs"));
        report.case("bad", 1.0, Err(anyhow::anyhow!("expected 1, saw 2")), &alarms, Path::new("there/logs"));
        assert_eq!(report.problems(), ["bad: expected 1, saw 2; logs: there/logs"]);
        assert_eq!(report.cases["good"]["outcome"], "the attack failed");
    }
}
