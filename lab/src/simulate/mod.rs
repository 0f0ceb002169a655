//! `rcu simulate`: grace periods on machines that one does not have.
//!
//! - [`options`]: what can be typed; [`product`]: what is run for it; [`pool`]: running it on all
//!   CPUs; [`costs`]: what things cost on the simulated machine.
//! - [`what_if`]: engines on virtual machines, with [`shape`] and [`metric`] for the tables, and
//!   [`picture`] for the timeline and [`curves`] over CPUs; [`srcu`]: the same for SRCU.
//! - [`published`]: published figures beside ours; [`vary`]: what of that depends on estimates;
//!   [`suite`]: the library's engines and liburcu's algorithm on workloads of user space;
//!   [`validate`]: some of these for real, beside the model.
//! - [`list`]: what there is.

mod costs;
mod curves;
mod list;
mod metric;
mod options;
mod picture;
mod pool;
mod product;
mod published;
mod shape;
mod srcu;
mod suite;
mod validate;
mod vary;
mod what_if;

pub(crate) use options::SimulateArgs;

use crate::exit::{Exit, Failure, Result};
use crate::output::Output;

/// How a run ends, which may have been interrupted, or have found something broken.
fn exit(output: &mut Output, is_broken: bool) -> Exit {
    output.exit(if is_broken { Exit::Violation } else { Exit::Ok })
}

/// Runs `rcu simulate`.
pub(crate) fn run(args: &SimulateArgs, output: &mut Output) -> Result<Exit> {
    if args.list {
        if output.has_json() {
            return Err(Failure::usage("--list is text; it has no JSON"));
        }
        list::print(output);
        return Ok(Exit::Ok);
    }
    let is_srcu = args.what_if.engine.contains(&None);
    let what_if = &match args.quick && !is_srcu {
        true => args.what_if.clone().shortened(),
        false => args.what_if.clone(),
    };
    let exit = if let Some(sources) = &args.published {
        published::run(sources, args.vary, output)
    } else if args.suite {
        suite::run(args, output)
    } else if args.validate {
        validate::run(args.quick, output)
    } else if is_srcu {
        srcu::run(what_if, args.quick, output)
    } else {
        what_if::run(what_if, output)
    }?;
    if exit == Exit::Interrupted {
        output.note("interrupted: what was not simulated to its end is left out");
    }
    Ok(exit)
}
