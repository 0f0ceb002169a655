use std::sync::Mutex;
use std::sync::mpsc::channel;

fn main() {
    let (sender, receiver) = channel();
    // Clone the sender for each thread that puts in; with one taker, the mutex is not needed.
    let receiver = Mutex::new(receiver);
    sender.send(String::from("job")).unwrap();
    let job = receiver.lock().unwrap().try_recv();
    assert_eq!(job.as_deref(), Ok("job"));
}
