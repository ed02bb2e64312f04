//! Public parameters are those that L1 registered, or none.

use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_chain::{EpochParameters, ParameterSet, ParametersMismatch};
use blindfold_kit::*;
use blindfold_protocol::{Epoch, Epochs};

fn matched(change: impl FnOnce(&mut Epoch)) -> Result<EpochParameters, ParametersMismatch> {
    let mut epoch = epoch();
    change(&mut epoch);
    EpochParameters::new(epoch, Arc::clone(&committee().parameters), "somewhere".to_owned())
}

#[test]
fn each_mismatch_is_named() {
    let registered = B256::repeat_byte(7);
    assert!(matches!(
        matched(|epoch| epoch.parameters_hash = registered).unwrap_err(),
        ParametersMismatch::ParametersHash { epoch: EPOCH, registered: named, .. } if named == registered
    ));
    assert!(matches!(
        matched(|epoch| epoch.encryption_key_hash = registered).unwrap_err(),
        ParametersMismatch::EncryptionKeyHash { epoch: EPOCH, registered: named, .. } if named == registered
    ));
    for (mismatch, field) in [
        (matched(|epoch| epoch.max_batch = 9), "max_batch"),
        (matched(|epoch| epoch.threshold = 4), "threshold"),
        (
            matched(|epoch| {
                epoch.members.pop();
            }),
            "members",
        ),
    ] {
        assert!(
            matches!(mismatch.unwrap_err(), ParametersMismatch::Field { field: named, .. } if named == field)
        );
    }
}

#[test]
fn epochs_rise_and_do_not_overlap() {
    let first = matched(|epoch| epoch.last = 10).unwrap();
    let second = matched(|epoch| (epoch.epoch, epoch.first, epoch.last) = (2, 11, 20)).unwrap();
    let overlapping = matched(|epoch| (epoch.epoch, epoch.first, epoch.last) = (2, 10, 20)).unwrap();
    let set = ParameterSet::new(vec![first.clone(), second.clone()]).unwrap();
    assert_eq!(set.at(10).unwrap().epoch().epoch, 1);
    assert_eq!(set.at(11).unwrap().epoch().epoch, 2);
    assert!(set.at(21).is_none());
    assert_eq!(set.all().len(), 2);
    // The first epoch ends early; what it does not know of stays.
    let early = Epoch { last: 7, ..first.epoch().clone() };
    let moved = Epoch { first: 8, ..second.epoch().clone() };
    let more = Epoch { epoch: 3, first: 21, last: 30, ..first.epoch().clone() };
    let registered = Epochs::new(vec![early, moved, more]).unwrap();
    assert!(set.adopt(&registered) && !set.adopt(&registered));
    assert_eq!([7, 8].map(|number| set.at(number).unwrap().epoch().epoch), [1, 2]);
    assert_eq!(set.by_epoch(2).unwrap().epoch().first, 8);
    assert!(set.at(21).is_none() && set.by_epoch(3).is_none());
    assert_eq!(set.at(1).unwrap().parameters_location(), "somewhere");
    assert!(format!("{set:?}").contains("parameters_hash"));
    for epochs in [vec![first.clone(), overlapping], vec![second, first]] {
        assert!(matches!(ParameterSet::new(epochs).unwrap_err(), ParametersMismatch::Order { .. }));
    }
}
