//! The role's own process, by its admin port.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::Deserialize;

use super::{
    Patience,
    finding::{Area, Finding},
};
use crate::http_probe::{self, Answer, ProbeError};

const SUBJECT: &str = "admin_addr";

/// What `/readyz` answers.
#[derive(Deserialize)]
struct Ready {
    ready: bool,
    #[serde(default)]
    reasons: BTreeMap<String, String>,
}

pub(super) async fn look(admin: SocketAddr, patience: Patience) -> Vec<Finding> {
    vec![judged(admin, http_probe::get(&admin.to_string(), "/readyz", patience.answer_ms).await)]
}

fn judged(admin: SocketAddr, answer: Result<Answer, ProbeError>) -> Finding {
    let other = "find out which program has that port; the role needs it, or another one in its setting";
    let answer = match answer {
        Ok(answer) => answer,
        Err(fault) if fault.is_refused() => {
            let next = "start the role, if it should run";
            return Finding::not_checked(Area::Process, SUBJECT, format!("nobody listens at {admin}"), next);
        }
        Err(fault @ ProbeError::NotHttp) => {
            return Finding::error(Area::Process, SUBJECT, format!("{admin}: {fault}"), other);
        }
        Err(fault) => {
            let next = "look at the role's log; if its process hangs, restart it";
            return Finding::error(Area::Process, SUBJECT, format!("{admin}: {fault}"), next);
        }
    };
    match serde_json::from_str::<Ready>(&answer.body) {
        Ok(Ready { ready: true, .. }) if answer.status == 200 => {
            Finding::ok(Area::Process, SUBJECT, format!("the role at {admin} runs and is ready"))
        }
        Ok(Ready { ready: false, reasons }) => {
            let reasons: Vec<String> =
                reasons.iter().map(|(condition, reason)| format!("{condition}: {reason}")).collect();
            let next =
                "see \"Health\" in docs/operate.md for these conditions; some pass as the role catches up";
            Finding::warning(Area::Process, SUBJECT, format!("not ready; {}", reasons.join("; ")), next)
        }
        _ => Finding::error(Area::Process, SUBJECT, format!("{admin} is no role's admin port"), other),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::Level::{self, Error, NotChecked, Ok as Fine, Warning},
        *,
    };

    fn found(answer: Result<Answer, ProbeError>) -> (Level, String) {
        let finding = judged(SocketAddr::from(([127, 0, 0, 1], 9546)), answer);
        assert_eq!(finding.next.is_some(), finding.level != Fine);
        (finding.level, finding.found)
    }

    fn answer(status: u16, body: &str) -> Result<Answer, ProbeError> {
        Ok(Answer { status, date_ms: None, body: body.to_owned() })
    }

    #[test]
    fn readiness_is_told_with_its_reasons() {
        assert_eq!(found(answer(200, r#"{"ready":true}"#)).0, Fine);
        let waiting = found(answer(503, r#"{"ready":false,"reasons":{"clock":"off","l1":"old"}}"#));
        assert_eq!(waiting, (Warning, "not ready; clock: off; l1: old".to_owned()));
        assert_eq!(found(answer(200, "<html>")).0, Error);
        assert_eq!(found(answer(404, r#"{"ready":true}"#)).0, Error);
    }

    #[test]
    fn who_is_not_there_is_no_error_and_who_hangs_is() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let nobody = found(Err(ProbeError::Connection(refused)));
        assert_eq!(nobody, (NotChecked, "nobody listens at 127.0.0.1:9546".to_owned()));
        assert_eq!(found(Err(ProbeError::Timeout(5))).1, "127.0.0.1:9546: no answer within 5 ms");
        assert_eq!(found(Err(ProbeError::NotHttp)).0, Error);
    }
}
