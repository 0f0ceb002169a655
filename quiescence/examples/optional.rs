//! `RcuOption`: a place that may be empty, and taking a value back out.

use quiescence::RcuOption;

fn main() {
    let session = RcuOption::empty();
    assert!(session.load(&quiescence::read()).is_none());

    session.store(Some(String::from("token 17")));
    let guard = quiescence::read();
    let seen = session.load(&guard).expect("stored above");

    // Readers that come now find nothing; `seen` is still good.
    let taken = session.take().expect("still there");
    assert_eq!(seen, "token 17");
    drop(guard);

    // Waits until no thread can be reading it any more.
    let owned: String = taken.into_inner();
    println!("had: {owned}");
}
