//! Invoices whose prices the payer does not see and whose quantities the supplier does not: from files of lines to a
//! total that the payer alone opens. What is computed: [`blindfold_rlwe::schemes::invoice`].
//!
//! | step | by | makes | goes to |
//! |---|---|---|---|
//! | [`Invoicing::order`] | payer | [`Order`]: a key of its own, the names of the lines, encrypted quantities | supplier |
//! | [`Invoicing::prices`] | supplier | [`PriceList`]: encrypted prices, the seed of the mask | **not to the payer** |
//! | [`Invoicing::ask`] | supplier | [`Total`], computed by a coprocessor | payer |
//! | [`Invoicing::open`] | payer | the total in base units | |
//! | [`Invoicing::verify`] | whoever has all files, and not the payer's key | whether it was computed right | |
//!
//! The names of the lines are between payer and supplier; the coprocessor gets ciphertexts, key and seed alone.

mod documents;
mod lines;

use alloy_primitives::{B256, keccak256};
use blindfold_confidential::state::Settings;
use blindfold_confidential::statement::Domain;
use blindfold_protocol::SigningKey;
use blindfold_rlwe::rlwe::HedgedRng;
use blindfold_rlwe::schemes::invoice::{InvoiceError, InvoiceSecret, Invoices};
use blindfold_rpc::confidential::ConfidentialApiClient;
use blindfold_rpc::{HttpClient, ReceivedError};
use rand::{CryptoRng, Rng};
use zeroize::Zeroizing;

pub use documents::{Order, PriceList, Total};
pub use lines::{Lines, LinesError};

/// What the secret of an order is hashed with.
const SECRET_TAG: &[u8] = b"BLINDFOLD-V1-INVOICE-WALLET";

/// Why an invoice does not go on.
#[derive(Debug, thiserror::Error)]
pub enum InvoiceDocumentError {
    /// The coprocessor refused, or did not answer.
    #[error("the coprocessor: {0}")]
    Rpc(ReceivedError),
    /// The lines of the file cannot be used.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// A part of a file is no encoding, or does not open.
    #[error("{what}: {error}")]
    Part {
        /// The file or field that it is.
        what: &'static str,
        /// What is wrong with it.
        error: InvoiceError,
    },
    /// The order was made with another wallet key, or for another deployment.
    #[error("the order was made with another wallet key, or in another deployment: use those")]
    OtherWallet,
    /// The prices are for another order.
    #[error("the prices are for order {found}, this is order {expected}: encrypt them for this one")]
    OtherOrder {
        /// Hash of the order at hand.
        expected: B256,
        /// Hash in the price list.
        found: B256,
    },
    /// The total names another key, other quantities or other prices.
    #[error("the total was made of other {what}: it names the hash {found}, those at hand have {expected}")]
    OtherPart {
        /// Which part: key, quantities or prices.
        what: &'static str,
        /// Hash of what is at hand.
        expected: B256,
        /// The hash that the total names.
        found: B256,
    },
    /// Computing it again gives other bytes.
    #[error("the total is not what its parts give: its hash is {found}, computed again it is {expected}")]
    OtherTotal {
        /// Hash of what is computed here.
        expected: B256,
        /// Hash of what the file holds.
        found: B256,
    },
}

impl From<blindfold_rpc::jsonrpsee::core::ClientError> for InvoiceDocumentError {
    fn from(error: blindfold_rpc::jsonrpsee::core::ClientError) -> Self {
        Self::Rpc(error.into())
    }
}

/// Names the part that an error is about.
fn part(what: &'static str) -> impl FnOnce(InvoiceError) -> InvoiceDocumentError {
    move |error| InvoiceDocumentError::Part { what, error }
}

/// Makes and opens the invoices of one deployment.
#[derive(Debug)]
pub struct Invoicing {
    invoices: Invoices,
    domain: Domain,
}

impl Invoicing {
    /// For a deployment and the seed of its public polynomials. Builds tables for three sets of parameters.
    ///
    /// # Errors
    /// None in practice: the numbers are fixed.
    pub fn new(settings: &Settings, seed: B256) -> Result<Self, InvoiceDocumentError> {
        let invoices = Invoices::new(&seed.0).map_err(part("the deployment"))?;
        Ok(Self { invoices, domain: *settings.domain() })
    }

    /// The secret of an order: of the wallet's key, the deployment and the order's salt. One for each order, because a
    /// total that is paid says something of the secret that opened it.
    fn secret(&self, key: &SigningKey, salt: B256) -> InvoiceSecret {
        let scalar = key.to_bytes();
        let mut message = Zeroizing::new(Vec::with_capacity(SECRET_TAG.len() + 32 + 8 + 8 + 20 + 32));
        message.extend_from_slice(SECRET_TAG);
        message.extend_from_slice(scalar.as_slice());
        message.extend_from_slice(&self.domain.l1_chain_id.to_be_bytes());
        message.extend_from_slice(&self.domain.chain_id.to_be_bytes());
        message.extend_from_slice(self.domain.contract.as_slice());
        message.extend_from_slice(salt.as_slice());
        let seed = Zeroizing::new(keccak256(message.as_slice()).0);
        self.invoices.secret(&seed)
    }

    /// The payer's order: a fresh key, and the quantities encrypted to it. Three keys and three encryptions.
    ///
    /// # Errors
    /// [`InvoiceDocumentError::Part`] for more lines than an invoice has.
    pub fn order(
        &self,
        key: &SigningKey,
        lines: &Lines<u16>,
        rng: &mut impl CryptoRng,
    ) -> Result<Order, InvoiceDocumentError> {
        let numbers: Zeroizing<Vec<u8>> =
            Zeroizing::new(lines.numbers().iter().flat_map(|number| number.to_be_bytes()).collect());
        let mut rng = HedgedRng::new(&key.to_bytes()[..], &[b"order", &numbers], rng);
        let mut salt = B256::ZERO;
        rng.fill_bytes(&mut salt.0);
        let public = self.invoices.key(&self.secret(key, salt));
        let quantities = self
            .invoices
            .encrypt_quantities(&public, lines.numbers(), &mut rng)
            .map_err(part("the order"))?;
        Ok(Order {
            salt,
            key: public.encode().into(),
            lines: lines.names().to_vec(),
            quantities: quantities.encode().into(),
        })
    }

    /// The supplier's prices for an order, in its order of lines, with a fresh seed for the mask. The list may have more
    /// lines than the order. Three encryptions.
    ///
    /// # Errors
    /// [`InvoiceDocumentError::Lines`] for a line without a price, [`InvoiceDocumentError::Part`].
    pub fn prices(
        &self,
        order: &Order,
        list: &Lines<u32>,
        rng: &mut impl CryptoRng,
    ) -> Result<PriceList, InvoiceDocumentError> {
        let prices = list.of(&order.lines)?;
        let key = self.invoices.decode_key(&order.key).map_err(part("the order's key"))?;
        // The supplier has no key here; what he hides is his prices.
        let hidden: Zeroizing<Vec<u8>> =
            Zeroizing::new(prices.iter().flat_map(|price| price.to_be_bytes()).collect());
        let mut rng = HedgedRng::new(&hidden, &[b"prices", order.hash().as_slice()], rng);
        let prices = self.invoices.encrypt_prices(&key, &prices, &mut rng).map_err(part("the prices"))?;
        let mut mask_seed = B256::ZERO;
        rng.fill_bytes(&mut mask_seed.0);
        Ok(PriceList { order_hash: order.hash(), prices: prices.encode().into(), mask_seed })
    }

    /// Has a coprocessor compute the total. It is given key, ciphertexts and seed, and no names.
    ///
    /// # Errors
    /// [`InvoiceDocumentError::OtherOrder`], [`InvoiceDocumentError::Rpc`], [`InvoiceDocumentError::Part`] for an answer that is no total.
    pub async fn ask(
        &self,
        coprocessor: &HttpClient,
        order: &Order,
        prices: &PriceList,
    ) -> Result<Total, InvoiceDocumentError> {
        same_order(order, prices)?;
        let (key, quantities) = (order.key.clone(), order.quantities.clone());
        let total =
            coprocessor.get_invoice_total(key, quantities, prices.prices.clone(), prices.mask_seed).await?;
        self.invoices.decode_total(&total).map_err(part("the coprocessor's answer"))?;
        Ok(Total::of(order, prices, total))
    }

    /// The total, computed here. Three products and three masks.
    ///
    /// # Errors
    /// [`InvoiceDocumentError::OtherOrder`], [`InvoiceDocumentError::Part`].
    pub fn compute(&self, order: &Order, prices: &PriceList) -> Result<Total, InvoiceDocumentError> {
        same_order(order, prices)?;
        let key = self.invoices.decode_key(&order.key).map_err(part("the order's key"))?;
        let quantities =
            self.invoices.decode_ciphertext(&order.quantities).map_err(part("the order's quantities"))?;
        let encrypted = self.invoices.decode_ciphertext(&prices.prices).map_err(part("the prices"))?;
        let total = self
            .invoices
            .total(&key, &quantities, &encrypted, &prices.mask_seed.0)
            .map_err(part("the total"))?;
        Ok(Total::of(order, prices, total.encode().into()))
    }

    /// Whether the total is what order and prices give, to the byte.
    ///
    /// # Errors
    /// [`InvoiceDocumentError::OtherPart`] naming the first hash that differs, [`InvoiceDocumentError::OtherTotal`];
    /// [`InvoiceDocumentError::OtherOrder`], [`InvoiceDocumentError::Part`].
    pub fn verify(
        &self,
        order: &Order,
        prices: &PriceList,
        total: &Total,
    ) -> Result<(), InvoiceDocumentError> {
        same_parts(order, total)?;
        same("prices", prices.hash(), total.prices_hash)?;
        let (expected, found) = (self.compute(order, prices)?.hash(), total.hash());
        if expected == found { Ok(()) } else { Err(InvoiceDocumentError::OtherTotal { expected, found }) }
    }

    /// The total in base units, for the payer. That it was computed of honest prices, and computed right, is not seen
    /// here; one that was altered is found, as a rule.
    ///
    /// # Errors
    /// [`InvoiceDocumentError::OtherWallet`]; [`InvoiceDocumentError::OtherPart`] if it is for another order; [`InvoiceDocumentError::Part`].
    pub fn open(&self, key: &SigningKey, order: &Order, total: &Total) -> Result<u64, InvoiceDocumentError> {
        let secret = self.secret(key, order.salt);
        if self.invoices.key(&secret).encode() != *order.key {
            return Err(InvoiceDocumentError::OtherWallet);
        }
        same_parts(order, total)?;
        let quantities =
            self.invoices.decode_ciphertext(&order.quantities).map_err(part("the order's quantities"))?;
        let masked = self.invoices.decode_total(&total.total).map_err(part("the total"))?;
        self.invoices.open(&secret, &quantities, &masked).map_err(part("the total"))
    }
}

fn same_order(order: &Order, prices: &PriceList) -> Result<(), InvoiceDocumentError> {
    let (expected, found) = (order.hash(), prices.order_hash);
    if expected == found { Ok(()) } else { Err(InvoiceDocumentError::OtherOrder { expected, found }) }
}

fn same_parts(order: &Order, total: &Total) -> Result<(), InvoiceDocumentError> {
    same("keys", order.key_hash(), total.key_hash)?;
    same("quantities", order.quantities_hash(), total.quantities_hash)
}

fn same(what: &'static str, expected: B256, found: B256) -> Result<(), InvoiceDocumentError> {
    if expected == found { Ok(()) } else { Err(InvoiceDocumentError::OtherPart { what, expected, found }) }
}

#[cfg(test)]
mod tests;
