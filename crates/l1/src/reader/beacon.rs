//! Blobs by the API of a beacon node. Nothing it says is believed: a blob counts when its commitment, computed here,
//! has the versioned hash that L1 recorded.

use std::collections::BTreeMap;

use alloy_eips::eip4844::BYTES_PER_BLOB;
use alloy_primitives::Bytes;
use blindfold_engine::L1Origin;
use blindfold_protocol::B256;
use blindfold_runtime::blocking;
use serde::Deserialize;

use crate::{
    error::L1Error,
    posting::blobs::{MAX_BLOBS, versioned_hash},
    transport::Http,
};

/// How the call is named in errors.
const GET_BLOBS: &str = "/eth/v1/beacon/blobs";
/// Blobs of one answer that are looked at: more than any block carries.
const MAX_ANSWER_BLOBS: usize = 128;
/// Longest answer that is read: so many blobs in hex.
const ANSWER_LIMIT_BYTES: usize = MAX_ANSWER_BLOBS * (2 * BYTES_PER_BLOB + 8);

/// What `/eth/v1/beacon/blobs/{block_id}` answers; its other fields are of no use here.
#[derive(Deserialize)]
struct Answer {
    data: Vec<Bytes>,
}

/// How the question for the version is named in errors, and its path.
const GET_VERSION: &str = "/eth/v1/node/version";

/// What `/eth/v1/node/version` answers.
#[derive(Deserialize)]
struct VersionAnswer {
    data: Version,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

/// A beacon node's HTTP API.
#[derive(Clone, Debug)]
pub(crate) struct Beacon {
    http: Http,
}

impl Beacon {
    pub fn new(url: &str, timeout_ms: u64) -> Result<Self, L1Error> {
        Ok(Self { http: Http::new(url, timeout_ms)?.with_response_limit(ANSWER_LIMIT_BYTES) })
    }

    /// What the node says it is.
    pub async fn version(&self) -> Result<String, L1Error> {
        let answer: VersionAnswer = self.http.get(GET_VERSION, GET_VERSION).await?;
        Ok(answer.data.version)
    }

    /// The blobs with these versioned hashes, in this order, of the block `holder` whose successor is `child`; `None`
    /// when the node does not have all of them (it may have pruned them). Costs a commitment for each blob of the
    /// answer, on a thread where blocking is allowed.
    pub async fn blobs(
        &self,
        holder: &L1Origin,
        child: &L1Origin,
        hashes: &[B256],
    ) -> Result<Option<Vec<Bytes>>, L1Error> {
        if hashes.is_empty() || hashes.len() > MAX_BLOBS {
            return Ok(None);
        }
        let block = format!("{GET_BLOBS}/{}", block_id(holder, child));
        let names: Vec<String> = hashes.iter().map(|hash| format!("versioned_hashes={hash}")).collect();
        // Nodes differ in how they read a list of hashes: the whole block's blobs are asked for where that fails.
        match self.picked(&format!("{block}?{}", names.join("&")), hashes).await {
            Ok(Some(blobs)) => Ok(Some(blobs)),
            Ok(None) | Err(L1Error::HttpStatus { .. } | L1Error::Malformed { .. }) => {
                self.picked(&block, hashes).await
            }
            Err(error) => Err(error),
        }
    }

    async fn picked(&self, path: &str, hashes: &[B256]) -> Result<Option<Vec<Bytes>>, L1Error> {
        let answer: Answer = match self.http.get(GET_BLOBS, path).await {
            Ok(answer) => answer,
            Err(L1Error::HttpStatus { status: 404, .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if answer.data.len() > MAX_ANSWER_BLOBS {
            let reason = format!("{} blobs of one block", answer.data.len());
            return Err(L1Error::Malformed { method: GET_BLOBS.to_owned(), reason });
        }
        let wanted = hashes.to_vec();
        blocking(move || pick(answer.data, &wanted)).await.map_err(|error| L1Error::Malformed {
            method: GET_BLOBS.to_owned(),
            reason: format!("the check of the blobs ended: {error}"),
        })
    }
}

/// How a beacon node names the block: by the root that the next block states as its parent's (EIP-4788). A
/// development chain without beacon blocks states zero, and its node names blocks by number.
fn block_id(holder: &L1Origin, child: &L1Origin) -> String {
    if child.parent_beacon_block_root.is_zero() {
        holder.number.to_string()
    } else {
        child.parent_beacon_block_root.to_string()
    }
}

/// The wanted ones among what was given. What is no blob has no hash that could be wanted.
fn pick(given: Vec<Bytes>, wanted: &[B256]) -> Option<Vec<Bytes>> {
    let found: BTreeMap<B256, Bytes> =
        given.into_iter().filter_map(|bytes| Some((versioned_hash(&bytes).ok()?, bytes))).collect();
    wanted.iter().map(|hash| found.get(hash).cloned()).collect()
}

#[cfg(test)]
#[path = "beacon_tests.rs"]
mod tests;
