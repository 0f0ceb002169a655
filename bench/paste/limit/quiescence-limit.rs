// cargo add quiescence
use quiescence::sync::LimitCounter;

static IN_USE: LimitCounter = LimitCounter::new(100);

fn main() {
    assert!(IN_USE.try_add(1));
    assert!(!IN_USE.try_add(100), "that would exceed the limit");
    IN_USE.sub(1);
    assert_eq!(IN_USE.value(), 0);
}
