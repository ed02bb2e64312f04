//! Where the work on batches is counted.

use std::{sync::Arc, time::Duration};

use blindfold_bte::Check;
use blindfold_chain::{DecryptionWatch, MemberWatch, Step};

use crate::{HintPublisherMetrics, metrics::member_label, share::Pace, status::SharedStatus};

pub(crate) struct Watch {
    pub(crate) metrics: HintPublisherMetrics,
    pub(crate) status: Arc<SharedStatus>,
    pub(crate) pace: Arc<Pace>,
}

impl MemberWatch for Watch {
    fn faulty(&self, member: u16) {
        self.metrics.faulty_members.get(&[member_label(member)]).increment();
        self.status.update(|status| *status.faulty_members.entry(member).or_default() += 1);
    }

    fn failed(&self, member: u16) {
        self.metrics.member_failures.get(&[member_label(member)]).increment();
    }
}

impl DecryptionWatch for Watch {
    fn took(&self, step: Step, sub_batches: usize, time: Duration) {
        self.pace.took(step, sub_batches, time);
        let seconds = match step {
            Step::Predecrypt => &self.metrics.predecrypt_seconds,
            Step::Finalize => &self.metrics.finalize_seconds,
            Step::Decrypt => &self.metrics.decrypt_seconds,
        };
        seconds.observe_duration(time);
    }

    fn overruled(&self, items: usize) {
        self.metrics.overruled.get(&[Check::Opening.name()]).add(items as u64);
    }
}
