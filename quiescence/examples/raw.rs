//! `raw`: sections without guards and callbacks without boxes, as behind a C interface.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use quiescence::{Domain, raw};

#[repr(C)]
struct Route {
    head: raw::Head, // first, so that a pointer to it is one to the route
    metric: u32,
}

static ROUTE: AtomicPtr<Route> = AtomicPtr::new(ptr::null_mut());
static FREED: AtomicU32 = AtomicU32::new(0);

fn metric() -> Option<u32> {
    let domain = Domain::global();
    raw::read_lock(&domain);
    // Acquire: pairs with the Release in `replace`; the route was made before it was published.
    let route = ROUTE.load(Acquire);
    // SAFETY: null, or a route that stays until this section ends.
    let metric = unsafe { route.as_ref() }.map(|route| route.metric);
    // SAFETY: begun above; what was loaded is not used any more.
    unsafe { raw::read_unlock(&domain) };
    metric
}

fn replace(metric: Option<u32>) {
    let new = metric.map_or(ptr::null_mut(), |metric| {
        Box::into_raw(Box::new(Route { head: raw::Head::new(), metric }))
    });
    let old = ROUTE.swap(new, AcqRel);
    if !old.is_null() {
        // SAFETY: its head comes first; no section that begins now can reach it; it is queued once.
        unsafe { raw::call_head(&Domain::global(), old.cast(), free) };
    }
}

unsafe extern "C" fn free(head: *mut raw::Head) {
    // SAFETY: the head comes first in a route that came from a box; this is called once for each.
    drop(unsafe { Box::from_raw(head.cast::<Route>()) });
    FREED.fetch_add(1, Relaxed);
}

fn main() {
    replace(Some(10));
    assert_eq!(metric(), Some(10));
    replace(Some(20));
    assert_eq!(metric(), Some(20));
    replace(None);
    assert_eq!(metric(), None);
    quiescence::barrier();
    println!("{} routes were freed", FREED.load(Relaxed));
    assert_eq!(FREED.load(Relaxed), 2);
}
