//! `blindfold l1 post-header`.

use anyhow::{Context, Result, bail};
use blindfold_l1::{L1HeaderDue, Standing};
use clap::Args;

use super::WriteArgs;
use crate::wallet::print;

pub(super) const EXAMPLE: &str = "Example:
  blindfold l1 post-header --l1 http://127.0.0.1:8545 --chain rollup.json --key key.json --password-file password

Anyone may, when nothing certified was posted for the posting deadline, when the next forced item has been due for as
long, when two headers of the next number were shown, or when the announced end of the epoch is due (`l1 committee
end-at-head`, `silent`): then it is the epoch's last. The header takes the forced items that are due; the fee ledger stays
as it is. Ends with an error, and says the L1 block, while it is not time for that.";

/// Options of `post-header`.
#[derive(Args, Debug)]
pub struct PostHeaderArgs {
    #[command(flatten)]
    write: WriteArgs,
}

pub(super) async fn run(args: &PostHeaderArgs) -> Result<()> {
    let (_, writer) = args.write.connect().await?;
    let l1 = writer.client();
    let parent = l1
        .head_header()
        .await?
        .context("no header was ever posted: L1 makes none before the first certified one")?;
    let standing = l1.standing().await?;
    let items = due(&standing, parent.envelope_count)?;
    eprintln!("having L1 make header {} with {items} forced items", parent.number.saturating_add(1));
    let sent = writer.post_l1_header(&parent).await?;
    let made = l1.head_header().await?.filter(|made| made.number > parent.number);
    let made =
        made.context("the header is not in the newest block any more: look at `blindfold l1 status`")?;
    let text = format!(
        "L1 made header {} with {} items in block {} ({})",
        made.number, made.envelope_count, sent.block, sent.transaction
    );
    let value = serde_json::json!({
        "number": made.number,
        "headerHash": made.hash(),
        "items": made.envelope_count,
        "transaction": sent.transaction,
        "block": sent.block,
    });
    print(args.write.read.json, &value, text)
}

/// How many items the header would take, or why there is none yet.
fn due(standing: &Standing, parent_items: u32) -> Result<u64> {
    match standing.l1_header_due(parent_items) {
        L1HeaderDue::Now { items } => Ok(items),
        L1HeaderDue::From(block) => bail!(
            "not before L1 block {block}, the newest is {}: certified headers may come until then",
            standing.block
        ),
        L1HeaderDue::NothingToInclude { empty_from } => match standing.forced_next.first() {
            Some(item) => bail!(
                "no forced item is due: the next one, {}, is from L1 block {} on, the newest is {}",
                item.index,
                standing.due_at(item).min(empty_from),
                standing.block
            ),
            None => bail!(
                "nothing to include: no forced item waits, and the last header has no items; an empty header from \
                 L1 block {empty_from} on"
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l1_commands::status::tests::{item, standing};

    #[test]
    fn what_is_not_due_yet_says_when_it_will_be() {
        let said = |standing: &Standing| due(standing, 0).unwrap_err().to_string();
        assert!(said(&standing(1_050)).contains("not before L1 block 1101, the newest is 1050"));
        // L1 made the head, so an empty one is due later.
        let mut waiting = Standing { head_posted_at: 1_105, ..standing(1_110) };
        assert!(said(&waiting).contains("no forced item waits"));
        assert!(said(&waiting).contains("an empty header from L1 block 1206 on"));
        waiting.forced_next = vec![item(4, 1_105)];
        assert!(said(&waiting).contains("the next one, 4, is from L1 block 1115 on"));
        waiting.forced_next = vec![item(4, 1_100)];
        assert_eq!(due(&waiting, 0).unwrap(), 1);
    }
}
