//! `statistics` and `fences`: what has happened, and how this process orders readers.

fn main() {
    println!("fences: {:?}", quiescence::fences());
    quiescence::retire(Box::new([0u8; 64])).unwrap();
    quiescence::barrier();
    let statistics = quiescence::statistics();
    println!("{statistics:#?}");
    assert_eq!(statistics.callbacks_waiting(), 0);
}
