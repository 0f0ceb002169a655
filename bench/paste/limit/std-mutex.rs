use std::sync::Mutex;

static IN_USE: Mutex<u64> = Mutex::new(0);
const LIMIT: u64 = 100;

fn try_take() -> bool {
    let mut count = IN_USE.lock().unwrap();
    let fits = *count < LIMIT;
    *count += u64::from(fits);
    fits
}

fn main() {
    assert!(try_take());
    *IN_USE.lock().unwrap() -= 1;
}
