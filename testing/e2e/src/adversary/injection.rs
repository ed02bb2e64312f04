//! Headers that the relay adds to the sequencer's feed.

use std::{collections::BTreeMap, sync::Arc};

use blindfold_protocol::{Canonical, SealedBatch};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::relay::Tamper;

/// Which roles are to get which headers, each once.
#[derive(Clone, Default)]
pub struct Injections(Arc<Mutex<BTreeMap<String, Injected>>>);

#[derive(Clone)]
struct Injected {
    sealed: SealedBatch,
    verdicts: Vec<Option<String>>,
}

impl Injections {
    /// Each of the roles gets this header right after the next one of its feed.
    pub fn arm(&self, roles: &[String], sealed: &SealedBatch, verdicts: &[Option<String>]) {
        let injected = Injected { sealed: sealed.clone(), verdicts: verdicts.to_vec() };
        let mut armed = self.0.lock();
        roles.iter().for_each(|role| {
            armed.insert(role.clone(), injected.clone());
        });
    }

    /// Whether every header was delivered.
    pub fn all_delivered(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The rule for the relay.
    pub fn tamper(&self) -> Tamper {
        let armed = Arc::clone(&self.0);
        Box::new(move |role, text| {
            let mut armed = armed.lock();
            if !armed.contains_key(role) {
                return None;
            }
            let mut message: Value = serde_json::from_str(text).ok()?;
            if message["method"] != "blind_subscription" || !message["params"]["result"]["sealed"].is_string()
            {
                return None;
            }
            let Injected { sealed, verdicts } = armed.remove(role)?;
            message["params"]["result"] = json!({
                "number": sealed.header.number,
                "hash": sealed.header.hash(),
                "sealed": sealed.to_hex(),
                "verdicts": verdicts,
            });
            Some(vec![text.to_owned(), message.to_string()])
        })
    }
}
