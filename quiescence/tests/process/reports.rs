//! Reports of stalls, for the tests of this process, which share its hook.

use crate::common::*;
use std::sync::Once;

use quiescence::report::StallReport;

static LISTENERS: Mutex<Vec<(String, Sender<StallReport>)>> = Mutex::new(Vec::new());

/// The reports, from now on, of the domain that has this name.
pub(crate) fn of(name: &str) -> Receiver<StallReport> {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        quiescence::report::set_stall_hook(|report| {
            let listeners = LISTENERS.lock().unwrap();
            for (_, listener) in listeners.iter().filter(|(name, _)| *name == report.domain) {
                let _ = listener.send(report.clone()); // the test may be over
            }
        });
    });
    let (tell, told) = mpsc::channel();
    LISTENERS.lock().unwrap().push((name.to_owned(), tell));
    told
}
