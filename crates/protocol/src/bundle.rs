//! The message inside an envelope: a strict list of items, zero-padded to a size bucket.

use crate::limits::{MAX_BUNDLE_ITEMS, MAX_MESSAGE_BYTES, SIZE_BUCKETS, VERSION};
use std::fmt;
use zeroize::Zeroize;

/// Kind of an item that is a raw signed EIP-2718 transaction.
pub const KIND_TRANSACTION: u8 = 0;
/// Kind of an item that is a confidential transaction: the coprocessor's, never an L2 block's. Kinds above are reserved.
pub const KIND_CONFIDENTIAL: u8 = 1;

const FIXED_BYTES: usize = 1 + 2;
const ITEM_OVERHEAD_BYTES: usize = 1 + 4;

/// One item of a bundle. Its bytes are plaintext: wiped when dropped and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct BundleItem {
    /// What the bytes are; see [`KIND_TRANSACTION`] and [`KIND_CONFIDENTIAL`].
    pub kind: u8,
    /// The item itself: for kind 0 a raw signed EIP-2718 transaction, for kind 1 an encoded confidential one.
    pub bytes: Vec<u8>,
}

impl BundleItem {
    /// A raw signed EIP-2718 transaction.
    pub fn transaction(bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind: KIND_TRANSACTION, bytes: bytes.into() }
    }

    /// An item of kind 1: an encoded confidential transaction.
    pub fn confidential(bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind: KIND_CONFIDENTIAL, bytes: bytes.into() }
    }
}

impl fmt::Debug for BundleItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BundleItem(kind {}, {} bytes, redacted)", self.kind, self.bytes.len())
    }
}

impl Drop for BundleItem {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

/// The items of one envelope, in order. An empty bundle is a valid one: cover traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// The items in the order in which they are executed, at most
    /// [`MAX_BUNDLE_ITEMS`].
    pub items: Vec<BundleItem>,
}

/// Why a message is no bundle, or a bundle has no message. The fault of whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The length is not a size bucket.
    #[error("{0} bytes is not a size bucket")]
    BadLength(usize),
    /// The version byte is not the one this code speaks.
    #[error("bundle version {0} is not known")]
    Version(u8),
    /// More items than [`MAX_BUNDLE_ITEMS`].
    #[error("{0} items, at most {MAX_BUNDLE_ITEMS}")]
    TooManyItems(usize),
    /// The message ends inside an item.
    #[error("the message ends inside item {0}")]
    Short(usize),
    /// A byte after the last item is not zero.
    #[error("a padding byte is not zero")]
    Padding,
    /// The bundle is longer than the largest bucket, or than the bucket asked for.
    #[error("the bundle takes {got} bytes, the bucket has {limit}")]
    TooLong {
        /// Bytes that the items take without padding.
        got: usize,
        /// Bytes that the bucket has.
        limit: usize,
    },
}

impl BundleError {
    /// The stable name in receipts: every fault of a bundle is one.
    pub fn as_str(&self) -> &'static str {
        "bad_bundle"
    }
}

/// The smallest bucket that holds `len` bytes.
pub fn bucket_for(len: usize) -> Option<usize> {
    SIZE_BUCKETS.into_iter().find(|bucket| *bucket >= len)
}

impl Bundle {
    /// A bundle of raw signed transactions.
    pub fn of_transactions<I>(transactions: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Vec<u8>>,
    {
        Self { items: transactions.into_iter().map(BundleItem::transaction).collect() }
    }

    /// Bytes of the message before it is padded.
    pub fn unpadded_len(&self) -> usize {
        FIXED_BYTES + self.items.iter().map(|item| ITEM_OVERHEAD_BYTES + item.bytes.len()).sum::<usize>()
    }

    /// The message, padded to the smallest bucket that holds it.
    pub fn encode_padded(&self) -> Result<Vec<u8>, BundleError> {
        let got = self.unpadded_len();
        let bucket = bucket_for(got).ok_or(BundleError::TooLong { got, limit: MAX_MESSAGE_BYTES })?;
        self.encode_padded_to(bucket)
    }

    /// The message, padded to a chosen bucket: a larger one tells less about the length.
    pub fn encode_padded_to(&self, bucket_bytes: usize) -> Result<Vec<u8>, BundleError> {
        if !SIZE_BUCKETS.contains(&bucket_bytes) {
            return Err(BundleError::BadLength(bucket_bytes));
        }
        if self.items.len() > MAX_BUNDLE_ITEMS {
            return Err(BundleError::TooManyItems(self.items.len()));
        }
        let got = self.unpadded_len();
        if got > bucket_bytes {
            return Err(BundleError::TooLong { got, limit: bucket_bytes });
        }
        // Reserved in full, so that growing leaves no copy of plaintext behind.
        let mut out = Vec::with_capacity(bucket_bytes);
        out.push(VERSION);
        out.extend_from_slice(&(self.items.len() as u16).to_be_bytes());
        for item in &self.items {
            out.push(item.kind);
            out.extend_from_slice(&(item.bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(&item.bytes);
        }
        out.resize(bucket_bytes, 0);
        Ok(out)
    }

    /// Reads a message strictly: the length is a bucket, every padding byte is zero.
    pub fn decode(message: &[u8]) -> Result<Self, BundleError> {
        if !SIZE_BUCKETS.contains(&message.len()) {
            return Err(BundleError::BadLength(message.len()));
        }
        // The smallest bucket holds the fixed part.
        let short = BundleError::Short(0);
        let (fixed, mut rest) = message.split_first_chunk::<FIXED_BYTES>().ok_or(short)?;
        let [version, count_high, count_low] = *fixed;
        if version != VERSION {
            return Err(BundleError::Version(version));
        }
        let count = usize::from(u16::from_be_bytes([count_high, count_low]));
        if count > MAX_BUNDLE_ITEMS {
            return Err(BundleError::TooManyItems(count));
        }
        let mut items = Vec::with_capacity(count);
        for index in 0..count {
            let short = BundleError::Short(index);
            let (head, tail) = rest.split_first_chunk::<ITEM_OVERHEAD_BYTES>().ok_or(short)?;
            let [kind, length @ ..] = *head;
            let length = u32::from_be_bytes(length) as usize;
            let (bytes, tail) = tail.split_at_checked(length).ok_or(short)?;
            items.push(BundleItem { kind, bytes: bytes.to_vec() });
            rest = tail;
        }
        if rest.iter().any(|byte| *byte != 0) {
            return Err(BundleError::Padding);
        }
        Ok(Self { items })
    }
}
