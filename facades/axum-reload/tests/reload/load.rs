//! Requests over loopback while the routes are replaced again and again.
//!
//! The text of each route is the number of its table. So each reply tells which table it is of: at
//! least the one that was there before the request, and at most the one that was there after the
//! reply.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use axum_reload::{Routes, runtime};
use quiescence::Rcu;

/// How many routes a table has.
const ROUTES: u64 = 100;

fn table(number: u64) -> Routes {
    let lines: String = (0..ROUTES).map(|route| format!("/{route} {number}\n")).collect();
    Routes::parse(&lines).expect("a path and a number a line")
}

/// Has so many clients ask a server of so many workers, in the same process, for this long. Returns
/// how many requests got a reply, and how many tables there were.
///
/// # Errors
/// If a socket fails, or a reply is of no table that was there.
pub(crate) fn run(workers: usize, clients: u64, lasts: Duration) -> io::Result<[u64; 2]> {
    let runtime = runtime(workers)?;
    let routes = Arc::new(Rcu::new(table(0)));
    let address = super::served(&runtime, &routes);
    let tables = Arc::new(Tables::default());
    let reloads = runtime.spawn({
        let tables = Arc::clone(&tables);
        async move { tables.reload(&routes).await }
    });
    let requests: io::Result<u64> = thread::scope(|scope| {
        let ask = |seed| tables.ask(TcpStream::connect(address)?, seed);
        let clients: Vec<_> = (0..clients).map(|seed| scope.spawn(move || ask(seed))).collect();
        thread::sleep(lasts);
        tables.stop.store(true, SeqCst);
        clients.into_iter().map(|client| client.join().expect("it returns errors")).sum()
    });
    Ok([requests?, runtime.block_on(reloads)?])
}

/// Which tables there are.
#[derive(Debug, Default)]
struct Tables {
    /// Stored, and seen by each request that begins now.
    stored: AtomicU64,
    /// About to be stored.
    announced: AtomicU64,
    stop: AtomicBool,
}

impl Tables {
    async fn reload(&self, routes: &Rcu<Routes>) -> u64 {
        let mut number = 0;
        while !self.stop.load(SeqCst) {
            number += 1;
            self.announced.store(number, SeqCst);
            routes.store_async(table(number)).await;
            self.stored.store(number, SeqCst);
            tokio::task::yield_now().await;
        }
        number
    }

    fn ask(&self, stream: TcpStream, seed: u64) -> io::Result<u64> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let (mut requests, mut route) = (0, seed);
        while !self.stop.load(SeqCst) {
            route = (route + 7) % ROUTES;
            let least = self.stored.load(SeqCst);
            let number = ask_once(&mut stream, route)?;
            requests += 1;
            let most = self.announced.load(SeqCst);
            if !(least..=most).contains(&number) {
                return Err(io::Error::other(format!(
                    "/{route} was of table {number}, where tables {least} to {most} were there"
                )));
            }
        }
        Ok(requests)
    }
}

/// A request on a connection that stays. Returns the number in the reply's body.
fn ask_once(stream: &mut BufReader<TcpStream>, route: u64) -> io::Result<u64> {
    let request = format!("GET /{route} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes())?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let length = length.filter(|_| head.starts_with("http/1.1 200"));
    let length =
        length.ok_or_else(|| io::Error::other(format!("not what was asked for: {head}")))?;
    let mut body = String::new();
    stream.take(length).read_to_string(&mut body)?;
    body.parse().map_err(|_| io::Error::other(format!("no number in {body}")))
}
