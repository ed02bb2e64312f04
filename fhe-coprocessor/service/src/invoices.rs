//! Totals of invoices, on threads of their own and a few at once: nothing here is stored, or depends on what is.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use blindfold_rlwe::schemes::invoice::{InvoiceError, Invoices};
use blindfold_rpc::RpcError;
use tokio::sync::Semaphore;

use crate::counters::Counters;
use crate::limits::MAX_INVOICES_AT_ONCE;

/// What a call asks to be totalled.
pub(crate) struct Request {
    pub(crate) key: Bytes,
    pub(crate) quantities: Bytes,
    pub(crate) prices: Bytes,
    pub(crate) mask_seed: B256,
}

/// Computes totals, a few at once.
#[derive(Clone)]
pub(crate) struct InvoiceDesk {
    invoices: Arc<Invoices>,
    places: Arc<Semaphore>,
    counters: Counters,
}

impl InvoiceDesk {
    /// For the seed of a deployment.
    ///
    /// # Errors
    /// None in practice: the numbers are fixed.
    pub(crate) fn new(seed: B256, counters: Counters) -> Result<Self, InvoiceError> {
        let places = Arc::new(Semaphore::new(MAX_INVOICES_AT_ONCE));
        Ok(Self { invoices: Arc::new(Invoices::new(&seed.0)?), places, counters })
    }

    /// One total. The place stays taken until the work is done, even when the caller has gone.
    pub(crate) async fn total(&self, request: Request) -> Result<Bytes, RpcError> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let message =
                format!("{MAX_INVOICES_AT_ONCE} totals are being computed, no more at once: ask again soon");
            return Err(RpcError::busy("invoices_busy", message));
        };
        let invoices = Arc::clone(&self.invoices);
        let work = blindfold_runtime::blocking(move || {
            let _place = place;
            computed(&invoices, &request)
        });
        let total = work.await.map_err(RpcError::internal)??;
        self.counters.invoices_computed.increment();
        Ok(total)
    }
}

fn computed(invoices: &Invoices, request: &Request) -> Result<Bytes, RpcError> {
    let key = invoices
        .decode_key(&request.key)
        .map_err(|fault| RpcError::invalid_params("invalid_key", format!("the key: {fault}")))?;
    let quantities = invoices.decode_ciphertext(&request.quantities).map_err(|fault| {
        RpcError::invalid_params("invalid_quantities", format!("the quantities: {fault}"))
    })?;
    let prices = invoices
        .decode_ciphertext(&request.prices)
        .map_err(|fault| RpcError::invalid_params("invalid_prices", format!("the prices: {fault}")))?;
    let total = invoices.total(&key, &quantities, &prices, &request.mask_seed.0);
    // Decoding has seen to everything that a caller could get wrong.
    Ok(total.map_err(RpcError::internal)?.encode().into())
}

#[cfg(test)]
mod tests {
    use blindfold_telemetry::Metrics;

    use super::*;

    #[tokio::test]
    async fn without_a_free_place_it_is_refused_for_now() {
        let counters = Counters::new(&Metrics::new("test", "0").unwrap()).unwrap();
        let desk = InvoiceDesk::new(B256::ZERO, counters).unwrap();
        let nothing = || Request {
            key: Bytes::new(),
            quantities: Bytes::new(),
            prices: Bytes::new(),
            mask_seed: B256::ZERO,
        };
        let taken = Arc::clone(&desk.places).try_acquire_many_owned(MAX_INVOICES_AT_ONCE as u32).unwrap();
        let busy = desk.total(nothing()).await.unwrap_err();
        assert_eq!((busy.reason.as_ref(), busy.retry), ("invoices_busy", true));
        drop(taken);
        // A refused request gives its place back.
        for _ in 0..=MAX_INVOICES_AT_ONCE {
            assert_eq!(desk.total(nothing()).await.unwrap_err().reason, "invalid_key");
        }
        assert_eq!(desk.counters.invoices_computed.get(), 0);
    }
}
