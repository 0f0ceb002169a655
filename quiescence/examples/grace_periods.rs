//! `synchronize`, `synchronize_expedited`, and cookies: waiting for readers, or asking later.

fn main() {
    // Waits until every section that has begun is over.
    quiescence::synchronize();
    // The same, by someone who would rather spin than sleep.
    quiescence::Domain::global().synchronize_expedited();

    // Ask now, do something else, look later.
    let cookie = quiescence::Domain::global().start_poll();
    let work: u64 = (0..1_000).sum();
    if !quiescence::Domain::global().poll(cookie) {
        quiescence::Domain::global().wait(cookie);
    }
    println!("{work}, and a grace period has gone by");

    // A cookie without a request: any later grace period will do.
    let cookie = quiescence::Domain::global().cookie();
    quiescence::synchronize();
    assert!(quiescence::Domain::global().poll(cookie));
}
