//! What users hold: domains, readers and guards, cookies, and the values that readers load.
//!
//! - [`tag`]: the types that stand for a domain. [`names`]: those of domains made at run time, and
//!   of declared ones.
//! - [`domain`]: [`Domain`](crate::Domain). [`later`]: what it does after a grace period.
//!   [`cookie`]: its grace periods, asked for before they are waited for. [`builder`]: settings of
//!   a domain made at run time. [`global`]: free functions for the global domain. [`sections`]:
//!   checks of callers' sections. [`own_section`]: a thread does not wait for itself. [`impls`]:
//!   implementations that several types share.
//! - [`guard`]: sections of threads, and the global domain. [`reader`], [`qsbr`]: handles of
//!   readers.
//! - [`srcu`]: sleepable domains.
//! - [`rcu`]: a value behind a pointer.
//! - [`snapshot`]: a value that is read in a restartable sequence. [`arc_cell`]: a counted pointer
//!   that is read by hazard pointers. [`hazard`]: hazard pointers. [`exact_cell`]: a counted
//!   pointer that readers borrow.
//! - [`raw`]: sections and callbacks without guards and boxes.
//! - [`tasks`]: the same waits as futures. `tokio`: workers of that runtime as readers.
//!
//! May import: [`os`](crate::os), [`event`](crate::event), [`percpu`](crate::percpu), `hazptr`,
//! [`gp`](crate::gp), [`srcu`](crate::srcu), [`rseq`](crate::rseq), [`reclaim`](crate::reclaim).

pub(crate) mod arc_cell;
pub(crate) mod exact_cell;
pub(crate) mod builder;
pub(crate) mod cookie;
// It is the room's first file, and a look for `Domain` begins with its name.
#[expect(clippy::module_inception)]
pub(crate) mod domain;
pub(crate) mod global;
pub(crate) mod guard;
pub(crate) mod impls;
pub(crate) mod later;
pub(crate) mod tag;
pub(crate) mod names;
pub(crate) mod sections;
pub(crate) mod own_section;
pub(crate) mod qsbr;
#[cfg(feature = "epoch")]
#[doc(alias = "crossbeam-epoch")]
pub mod epoch;
pub mod hazard;
pub mod raw;
pub(crate) mod rcu;
pub(crate) mod reader;
pub(crate) mod snapshot;
pub(crate) mod srcu;
mod statistics;
pub(crate) mod tasks;
#[cfg(feature = "tokio")]
pub mod tokio;

use self::tag::DomainTag;
use crate::reclaim::weigh::owns;

owns! {
    /// A handle of a shared domain.
    [K: DomainTag] domain::Domain<K>, false;
    /// What it allocates when it is used counts for nothing.
    [] srcu::Srcu, false;
    /// What it allocates when it is used counts for nothing.
    [] hazard::HazardDomain, false;
    [] cookie::Cookie, false;
    /// What is in it is weighed where it is replaced there.
    [T: Send + Sync + 'static, K: DomainTag] rcu::Rcu<T, K>, false;
    /// As [`Rcu`](crate::Rcu).
    [T: Send + Sync + 'static, K: DomainTag] rcu::RcuOption<T, K>, false;
    [] rcu::Version, false;
    /// A value is weighed when the cell gives it up.
    [P: arc_cell::RefCnt] arc_cell::ArcCellAny<P>, false;
}
