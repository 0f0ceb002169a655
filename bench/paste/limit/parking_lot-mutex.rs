// cargo add parking_lot
use parking_lot::Mutex;

static IN_USE: Mutex<u64> = Mutex::new(0);
const LIMIT: u64 = 100;

fn try_take() -> bool {
    let mut count = IN_USE.lock();
    let fits = *count < LIMIT;
    *count += u64::from(fits);
    fits
}

fn main() {
    assert!(try_take());
    *IN_USE.lock() -= 1;
}
