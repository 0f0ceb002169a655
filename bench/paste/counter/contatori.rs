// cargo add contatori
use contatori::counters::Observable;
use contatori::counters::unsigned::Unsigned;

static EVENTS: Unsigned = Unsigned::new();

fn main() {
    EVENTS.add(1);
    println!("{:?}", EVENTS.value());
}
