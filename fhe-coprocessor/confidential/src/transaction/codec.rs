//! Encodings of confidential transactions.

use std::sync::Arc;

use alloy_primitives::Address;
use ark_ff::{BigInt, BigInteger, PrimeField};
use blindfold_protocol::{DecodeError, Signature65};
use blindfold_rlwe::rlwe::{MultiCiphertext, Parameters, PublicKey};

use super::{
    ConfidentialTransaction, Deposit, EncodedProof, InvalidTransaction, Refresh, Register, Rollover,
    TRANSFER_RECIPIENTS, Transfer, VERSION, Withdraw,
};
use crate::Fr;

pub(super) fn encode(transaction: &ConfidentialTransaction) -> Vec<u8> {
    use ConfidentialTransaction as T;
    let head = [VERSION, transaction.kind()];
    match transaction {
        T::Register(register) => {
            let Register { owner, key, secret_commitment, proof, signature } = &**register;
            let commitment = element_bytes(secret_commitment);
            [&head, &owner[..], &key.encode(), &commitment, &proof.0, &signature.0].concat()
        }
        T::Deposit(Deposit { from, account, amount, nonce, signature }) => {
            let numbers = [amount, nonce].map(|number| number.to_be_bytes()).concat();
            [&head, &from[..], &account[..], &numbers, &signature.0].concat()
        }
        T::Transfer(transfer) => {
            let Transfer { sender, receiver, nonce, fee, amount, proof } = &**transfer;
            let numbers = [nonce, fee].map(|number| number.to_be_bytes()).concat();
            [&head, &sender[..], &receiver[..], &numbers, &amount.encode(), &proof.0].concat()
        }
        T::Rollover(Rollover { account, nonce, signature }) => {
            [&head, &account[..], &nonce.to_be_bytes(), &signature.0].concat()
        }
        T::Refresh(refresh) => {
            let Refresh { account, nonce, balance, proof } = &**refresh;
            [&head, &account[..], &nonce.to_be_bytes(), &balance.encode(), &proof.0].concat()
        }
        T::Withdraw(withdraw) => {
            let Withdraw { account, nonce, amount, recipient, proof } = &**withdraw;
            let numbers = [nonce, amount].map(|number| number.to_be_bytes()).concat();
            [&head, &account[..], &numbers, &recipient[..], &proof.0].concat()
        }
    }
}

pub(super) fn decode(
    parameters: &Arc<Parameters>,
    bytes: &[u8],
) -> Result<ConfidentialTransaction, InvalidTransaction> {
    use ConfidentialTransaction as T;
    let mut reader = Reader(bytes);
    match reader.u8("version")? {
        VERSION => {}
        other => return Err(DecodeError::Version(other).into()),
    }
    let transaction = match reader.u8("kind")? {
        1 => T::Register(Box::new(Register {
            owner: reader.address("owner")?,
            key: reader.key(parameters)?,
            secret_commitment: reader.element()?,
            proof: reader.proof()?,
            signature: reader.signature()?,
        })),
        2 => T::Deposit(Deposit {
            from: reader.address("from")?,
            account: reader.address("account")?,
            amount: reader.u64("amount")?,
            nonce: reader.u64("nonce")?,
            signature: reader.signature()?,
        }),
        3 => T::Transfer(Box::new(Transfer {
            sender: reader.address("sender")?,
            receiver: reader.address("receiver")?,
            nonce: reader.u64("nonce")?,
            fee: reader.u64("fee")?,
            amount: reader.ciphertext("amount", parameters, TRANSFER_RECIPIENTS)?,
            proof: reader.proof()?,
        })),
        4 => T::Rollover(Rollover {
            account: reader.address("account")?,
            nonce: reader.u64("nonce")?,
            signature: reader.signature()?,
        }),
        5 => T::Refresh(Box::new(Refresh {
            account: reader.address("account")?,
            nonce: reader.u64("nonce")?,
            balance: reader.ciphertext("balance", parameters, 1)?,
            proof: reader.proof()?,
        })),
        6 => T::Withdraw(Box::new(Withdraw {
            account: reader.address("account")?,
            nonce: reader.u64("nonce")?,
            amount: reader.u64("amount")?,
            recipient: reader.address("recipient")?,
            proof: reader.proof()?,
        })),
        value => return Err(DecodeError::UnknownTag { field: "kind", value }.into()),
    };
    reader.finish()?;
    Ok(transaction)
}

/// 32 bytes, most significant first.
pub(crate) fn element_bytes(element: &Fr) -> Vec<u8> {
    element.into_bigint().to_bytes_be()
}

/// Reads fields of fixed lengths.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, field: &'static str, needed: usize) -> Result<&'a [u8], DecodeError> {
        let short = DecodeError::Short { field, needed, left: self.0.len() };
        let (head, rest) = self.0.split_at_checked(needed).ok_or(short)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const L: usize>(&mut self, field: &'static str) -> Result<[u8; L], DecodeError> {
        let mut array = [0; L];
        array.copy_from_slice(self.take(field, L)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn address(&mut self, field: &'static str) -> Result<Address, DecodeError> {
        Ok(Address::from(self.array(field)?))
    }

    fn signature(&mut self) -> Result<Signature65, DecodeError> {
        Ok(Signature65(self.array("signature")?))
    }

    fn proof(&mut self) -> Result<EncodedProof, DecodeError> {
        Ok(EncodedProof(self.array("proof")?))
    }

    /// A field element in its one form.
    pub(crate) fn element(&mut self) -> Result<Fr, InvalidTransaction> {
        let bytes = self.take("secret commitment", 32)?;
        let mut limbs = [0; 4];
        for (limb, chunk) in limbs.iter_mut().zip(bytes.rchunks(8)) {
            *limb = chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Fr::from_bigint(BigInt::new(limbs)).ok_or(InvalidTransaction::SecretCommitment)
    }

    pub(crate) fn key(&mut self, parameters: &Arc<Parameters>) -> Result<PublicKey, InvalidTransaction> {
        let bytes = self.take("key", PublicKey::encoded_bytes(parameters))?;
        PublicKey::decode(parameters, bytes)
            .map_err(|fault| InvalidTransaction::Element { field: "key", fault })
    }

    fn ciphertext(
        &mut self,
        field: &'static str,
        parameters: &Arc<Parameters>,
        recipients: usize,
    ) -> Result<MultiCiphertext, InvalidTransaction> {
        let bytes = self.take(field, MultiCiphertext::encoded_bytes(parameters, recipients))?;
        MultiCiphertext::decode(parameters, recipients, bytes)
            .map_err(|fault| InvalidTransaction::Element { field, fault })
    }

    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}
