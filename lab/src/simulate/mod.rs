//! `rcu simulate`: grace periods on machines that one does not have.
//!
//! - [`options`]: what can be typed; [`product`]: what is run for it; [`pool`]: running it on all
//!   processors; [`costs`]: what things cost on the simulated machine.
//! - [`what_if`]: engines on virtual machines, with [`metric`] for the tables and [`picture`] for the
//!   timeline; [`two_bank`]: the same for SRCU.
//! - [`published`]: published figures beside ours; [`suite`]: `adaptive` against every fixed engine.
//! - [`list`]: what there is.

mod costs;
mod list;
mod metric;
mod options;
mod picture;
mod pool;
mod product;
mod published;
mod suite;
mod two_bank;
mod what_if;

pub(crate) use options::SimulateArgs;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Runs `rcu simulate`.
pub(crate) fn run(args: &SimulateArgs, output: &mut Output) -> Result<Exit, Failure> {
    if args.list {
        list::print(output)?;
        return Ok(Exit::Ok);
    }
    if args.published {
        return published::run(output);
    }
    if args.suite {
        return suite::run(args.quick, output);
    }
    let what_if = &args.what_if;
    if what_if.engine.iter().any(|name| name == two_bank::NAME) {
        return two_bank::run(what_if, output);
    }
    what_if::run(what_if, output)
}
