//! Many receipts at once, receipts that are told as they change, and calls that wait for one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_kit::{envelope, envelope_with, refused, within};
use blindfold_protocol::{B256, Canonical, Envelope};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Encoded, ReceiptApiClient, ReceivedError, RpcError, RunningRole,
    SyncApiClient,
    limits::MAX_SYNC_TIMEOUT_MS,
    types::{EnvelopeState, Receipt, SyncOptions, SyncUntil, SyncedEnvelope},
    ws_client,
};
use common::{Running, World};

fn options(until: SyncUntil, timeout_ms: u64) -> Option<SyncOptions> {
    Some(SyncOptions { promise: false, until, timeout_ms: Some(timeout_ms) })
}

async fn send_sync(
    running: &Running<'_>,
    envelope: &Envelope,
    options: Option<SyncOptions>,
) -> Result<SyncedEnvelope, RpcError> {
    // A sequencer that was just started finds out first what was signed before.
    within("the end of the recovery", async {
        loop {
            let sent = running.client.send_envelope_sync(Encoded::from_bytes(envelope.encode()), options);
            match sent.await.map_err(refused) {
                Err(refusal) if refusal.reason == "recovering" => tokio::task::yield_now().await,
                answer => return answer,
            }
        }
    })
    .await
}

fn state(synced: &SyncedEnvelope) -> Option<EnvelopeState> {
    synced.receipt.as_ref().map(|receipt| receipt.state)
}

#[tokio::test]
async fn who_sends_and_waits_is_answered_when_the_order_is_final() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let waited = envelope(1, 1);
    let sending = send_sync(&running, &waited, options(SyncUntil::Certified, MAX_SYNC_TIMEOUT_MS));
    let certifying = async {
        running.sealed(2).await;
        running.certify_through(2).await;
    };
    let (synced, ()) = within("the certificate", async { tokio::join!(sending, certifying) }).await;
    let synced = synced.unwrap();
    assert_eq!((synced.id, state(&synced)), (waited.id(), Some(EnvelopeState::Certified)));
    assert_eq!(synced.receipt, Some(running.receipt(waited.id()).await), "what is read later");
    // The same call again: its first answer was lost.
    let again = send_sync(&running, &waited, options(SyncUntil::Sealed, 1_000)).await.unwrap();
    assert_eq!(state(&again), Some(EnvelopeState::Certified));
    running.handle.shutdown().await;
}

/// Rules A-8 and J-7: whoever is too busy to take an envelope does not look whether it is there.
#[tokio::test]
async fn one_that_is_in_a_batch_is_no_error_however_long_the_queue_is() {
    let world = World::with(|config, _| {
        config.admission.proof_batch_items = 1;
        config.admission.max_wait_ms = 1;
    });
    let running = world.start_funded(&[1]).await;
    let first = envelope(1, 1);
    running.send(&first).await.unwrap();
    running.sealed(2).await;
    running.send(&envelope(1, 2)).await.unwrap();
    running.sealed(3).await;
    let other = send_sync(&running, &envelope(1, 3), options(SyncUntil::Sealed, 1_000)).await;
    assert_eq!(other.unwrap_err().reason, "queue_too_long", "two wait for certificates");
    let synced = send_sync(&running, &first, options(SyncUntil::Sealed, MAX_SYNC_TIMEOUT_MS)).await.unwrap();
    assert_eq!((synced.id, state(&synced)), (first.id(), Some(EnvelopeState::Sealed)));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn when_the_time_is_over_the_receipt_is_as_it_stands() {
    // Header 1 gets no certificate, so nothing more is sealed.
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let waiting = envelope(1, 1);
    for _ in 0..2 {
        let synced = send_sync(&running, &waiting, options(SyncUntil::Executed, 100)).await.unwrap();
        assert_eq!(state(&synced), Some(EnvelopeState::Pending), "it goes on");
    }
    assert_eq!(running.state(waiting.id()).await, EnvelopeState::Pending);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn what_is_refused_is_refused_at_once() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let poor = envelope(2, 1);
    assert_eq!(send_sync(&running, &poor, None).await.unwrap_err().reason, "insufficient_funds");
    let wrong = envelope_with(1, 1, |fields| fields.epoch = 2);
    assert_eq!(send_sync(&running, &wrong, None).await.unwrap_err().reason, "wrong_epoch");
    let long = options(SyncUntil::Sealed, MAX_SYNC_TIMEOUT_MS + 1);
    assert_eq!(send_sync(&running, &envelope(1, 1), long).await.unwrap_err().reason, "invalid_timeout");
    let garbage = running.client.send_envelope_sync(Encoded::from_bytes(vec![1, 2, 3]), None).await;
    assert_eq!(refused(garbage.unwrap_err()).reason, "undecodable");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn many_receipts_are_those_that_are_read_one_by_one() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let sent: Vec<Envelope> = (1..=5).map(|nonce| envelope(1, nonce)).collect();
    for envelope in &sent {
        running.send(envelope).await.unwrap();
    }
    running
        .eventually("the last one to be sealed", || async {
            running.state(sent[4].id()).await == EnvelopeState::Sealed
        })
        .await;
    let certified = running.receipt(sent[0].id()).await.number.unwrap();
    running.certify_through(certified).await;
    let mut ids: Vec<B256> = sent.iter().map(Envelope::id).collect();
    ids.insert(2, B256::repeat_byte(9));
    let receipts = running.client.get_receipts(ids.clone()).await.unwrap();
    for (id, receipt) in ids.iter().zip(&receipts) {
        assert_eq!(*receipt, running.client.get_receipt(*id).await.unwrap());
    }
    assert_eq!(receipts.iter().filter(|receipt| receipt.is_none()).count(), 1);
    for count in [0, 257] {
        let refusal = running.client.get_receipts(vec![B256::ZERO; count]).await.unwrap_err();
        assert_eq!(refused(refusal).reason, "too_many_ids");
    }
    running.handle.shutdown().await;
}

#[tokio::test]
async fn receipts_are_told_as_they_change() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let url = format!("ws://{}", running.handle.rpc_addr());
    let client = ws_client(&url, &ClientConfig::default()).await.unwrap();
    let (first, second) = (envelope(1, 1), envelope(1, 2));
    running.send(&first).await.unwrap();
    running.sealed(2).await;
    let ids = vec![first.id(), second.id()];
    let mut told = client.subscribe_receipts(ids).await.unwrap();
    let mut next = async |of: B256, state: EnvelopeState| -> Receipt {
        within("a receipt", async {
            loop {
                let receipt = told.next().await.unwrap().unwrap();
                if (receipt.id, receipt.state) == (of, state) {
                    return receipt;
                }
            }
        })
        .await
    };
    next(first.id(), EnvelopeState::Sealed).await;
    running.certify_through(2).await;
    let receipt = next(first.id(), EnvelopeState::Certified).await;
    assert_eq!(receipt, running.receipt(first.id()).await);
    running.send(&second).await.unwrap();
    let sealed = next(second.id(), EnvelopeState::Sealed).await;
    running.certify_through(sealed.number.unwrap()).await;
    next(second.id(), EnvelopeState::Certified).await;
    let refusal = client.subscribe_receipts(Vec::new()).await.unwrap_err();
    assert_eq!(ReceivedError::from(refusal).reason(), "too_many_ids");
    running.handle.shutdown().await;
}
