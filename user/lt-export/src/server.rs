// SPDX-License-Identifier: GPL-2.0 OR MIT

//! An HTTP server for one page. A connection gets one response within a few seconds, in a thread of
//! its own. Only a few connections are served at a time; the next few get an error, and further
//! ones are closed at once. This bounds the cost of a client that is slow, or sends too much or
//! garbage.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::format::Format;

/// Maximum number of connections served at a time. As many more are refused with status 503;
/// further ones are closed.
pub const CONNECTIONS: usize = 8;

/// Maximum size of a request with its headers, in bytes.
const HEAD: usize = 8192;
const HEADERS: usize = 64;

/// How long a client may take in total to send its request and to receive the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// An address with a page at `/metrics`.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    patience: Duration,
    live: Arc<AtomicUsize>,
}

/// Returns the page, or an error message.
type Page = dyn Fn(Format) -> Result<String, String> + Send + Sync;

impl Server {
    /// Listens on an address.
    ///
    /// # Errors
    /// When the address is in use, belongs to another machine, or is not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // A connection may be closed before it is accepted.
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            patience: PATIENCE,
            live: Arc::default(),
        })
    }

    /// Returns the address; port 0 has been replaced by the port that the kernel chose.
    ///
    /// # Errors
    /// The errors of getsockname(2).
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the descriptor that becomes readable when a client connects.
    #[must_use]
    pub fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Serves the clients that have connected, without waiting for more.
    ///
    /// # Errors
    /// When a connection cannot be accepted or served, such as for lack of file descriptors, memory
    /// or threads. A later call may succeed.
    pub fn serve(&self, page: &Arc<Page>) -> io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => return Err(error),
                },
            };
            let end = Instant::now() + self.patience;
            // Relaxed: no other data depends on the number, and only this thread increments it.
            let live = self.live.load(Ordering::Relaxed);
            if live >= 2 * CONNECTIONS {
                continue;
            }
            self.live.fetch_add(1, Ordering::Relaxed);
            let (page, counted) = (Arc::clone(page), Live(Arc::clone(&self.live)));
            thread::Builder::new().spawn(move || {
                let _counted = counted;
                // The client has disconnected or does not read, so there is no one to report an
                // error to.
                let _ = if live < CONNECTIONS {
                    talk(&stream, &*page, end)
                } else {
                    refuse(&stream, "503 Service Unavailable", end)
                };
            })?;
        }
    }
}

/// One connection that is served or refused.
struct Live(Arc<AtomicUsize>);

impl Drop for Live {
    fn drop(&mut self) {
        // Relaxed: see `Server::serve`, which alone reads the number.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response: the status line, the headers and the body.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn status(status: &'static str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{status}\n"),
        }
    }
}

fn talk(stream: &TcpStream, page: &Page, end: Instant) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let request = match request(stream, end) {
        Ok(request) => request,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return refuse(stream, "400 Bad Request", end);
        }
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return refuse(stream, "431 Request Header Fields Too Large", end);
        }
        Err(error) if is_late(&error) => {
            let grace = Instant::now() + Duration::from_secs(1);
            return refuse(stream, "408 Request Timeout", grace);
        }
        Err(error) => return Err(error),
    };
    let wanted = request.answer(page);
    answer(stream, &wanted, request.head_only, end)?;
    // A request of another kind may have a body.
    match request.wanted {
        Wanted::Other => linger(stream, end),
        _ => Ok(()),
    }
}

/// Responds with a status, regardless of the request.
fn refuse(stream: &TcpStream, status: &'static str, end: Instant) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    answer(stream, &Answer::status(status), false, end)?;
    linger(stream, end)
}

/// What a request asks for.
enum Wanted {
    Metrics,
    Index,
    Nothing,
    Other,
}

struct Request {
    wanted: Wanted,
    format: Format,
    /// Whether the client wants only the head of the response.
    head_only: bool,
}

impl Request {
    fn answer(&self, page: &Page) -> Answer {
        match self.wanted {
            Wanted::Metrics => match page(self.format) {
                Ok(body) => Answer {
                    status: "200 OK",
                    content_type: self.format.content_type(),
                    body,
                },
                Err(why) => Answer {
                    body: format!("{why}\n"),
                    ..Answer::status("500 Internal Server Error")
                },
            },
            Wanted::Index => Answer {
                body: "latency-tracker: /metrics\n".to_string(),
                ..Answer::status("200 OK")
            },
            Wanted::Nothing => Answer::status("404 Not Found"),
            Wanted::Other => Answer::status("405 Method Not Allowed"),
        }
    }
}

/// Reads the head of a request.
fn request(stream: &TcpStream, end: Instant) -> io::Result<Request> {
    let mut head = Vec::new();
    let mut more = [0; 1024];
    loop {
        let n = before(end, |left| {
            stream.set_read_timeout(Some(left))?;
            (&*stream).read(&mut more)
        })?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend(more.iter().take(n));
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.unwrap_or_default();
                let path = path.split('?').next().unwrap_or_default();
                let method = request.method.unwrap_or_default();
                let wanted = match (method, path) {
                    ("GET" | "HEAD", "/metrics") => Wanted::Metrics,
                    ("GET" | "HEAD", "/") => Wanted::Index,
                    ("GET" | "HEAD", _) => Wanted::Nothing,
                    _ => Wanted::Other,
                };
                let head_only = method == "HEAD";
                let accept = headers
                    .iter()
                    .filter(|header| header.name.eq_ignore_ascii_case("accept"));
                return Ok(Request {
                    wanted,
                    format: Format::accepted(accept.map(|header| header.value)),
                    head_only,
                });
            }
            Ok(httparse::Status::Partial) if head.len() < HEAD => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn answer(stream: &TcpStream, answer: &Answer, head_only: bool, end: Instant) -> io::Result<()> {
    let allow = match answer.status {
        "405 Method Not Allowed" => "Allow: GET, HEAD\r\n",
        _ => "",
    };
    let mut bytes = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    )
    .into_bytes();
    if !head_only {
        bytes.extend(answer.body.as_bytes());
    }
    let mut left: &[u8] = &bytes;
    while !left.is_empty() {
        let n = before(end, |time| {
            stream.set_write_timeout(Some(time))?;
            (&*stream).write(left)
        })?;
        left = left.get(n..).unwrap_or_default();
    }
    Ok(())
}

/// Waits until the response has arrived. Closing a connection with unread data would reset it, and
/// the client might not see the response.
fn linger(stream: &TcpStream, end: Instant) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let mut rest = [0; 4096];
    // A client that keeps sending is cut off.
    for _ in 0..256 {
        let n = before(end, |left| {
            stream.set_read_timeout(Some(left))?;
            (&*stream).read(&mut rest)
        })?;
        if n == 0 {
            break;
        }
    }
    Ok(())
}

/// Calls `call` with the time left until `end`; fails if there is none.
fn before<T>(end: Instant, mut call: impl FnMut(Duration) -> io::Result<T>) -> io::Result<T> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match call(left) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    // A read or write that has timed out in the socket returns the first of these.
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves until the test ends.
    fn start(
        patience: Duration,
        page: impl Fn(Format) -> Result<String, String> + Send + Sync + 'static,
    ) -> SocketAddr {
        let mut server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        server.patience = patience;
        server.listener().set_nonblocking(true).unwrap();
        let address = server.address().unwrap();
        let page: Arc<Page> = Arc::new(page);
        thread::spawn(move || {
            loop {
                server.serve(&page).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        address
    }

    fn usual() -> SocketAddr {
        start(Duration::from_secs(600), |format| {
            Ok(format!("{format:?} 1\n"))
        })
    }

    fn said(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    #[track_caller]
    fn status(address: SocketAddr, request: &[u8], status: &str) -> String {
        let said = said(address, request);
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
        said
    }

    #[test]
    fn the_page_is_at_metrics() {
        let address = usual();
        let said = status(
            address,
            b"GET /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n",
            "200 OK",
        );
        assert!(
            said.contains("Content-Type: text/plain; version=0.0.4;"),
            "{said}"
        );
        assert!(said.ends_with("\r\n\r\nText 1\n"), "{said}");
        let said = status(
            address,
            b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text\r\n\r\n",
            "200 OK",
        );
        assert!(
            said.contains("Content-Type: application/openmetrics-text; version=1.0.0;"),
            "{said}"
        );
        assert!(said.ends_with("\r\n\r\nOpenMetrics 1\n"), "{said}");
        let said = status(address, b"HEAD /metrics HTTP/1.1\r\n\r\n", "200 OK");
        assert!(
            said.contains("Content-Length: 7\r\n") && said.ends_with("\r\n\r\n"),
            "{said}"
        );
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        let address = usual();
        status(address, b"GET /x HTTP/1.1\r\n\r\n", "404");
        let said = status(address, b"POST /metrics HTTP/1.1\r\n\r\n", "405");
        assert!(said.contains("Allow: GET, HEAD"), "{said}");
        status(
            address,
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n",
            "400",
        );
        status(address, b"GET\r\n\r\n", "400");
        let mut long = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        long.resize(100_000, b'x');
        status(address, &long, "431");
        status(
            address,
            "GET / HTTP/1.1\r\n"
                .to_string()
                .as_bytes()
                .iter()
                .copied()
                .chain("X: y\r\n".repeat(100).bytes())
                .chain(*b"\r\n")
                .collect::<Vec<u8>>()
                .as_slice(),
            "431",
        );
    }

    #[test]
    fn a_page_that_cannot_be_made_says_why() {
        let address = start(
            Duration::from_secs(600),
            |_| Err("no such luck".to_string()),
        );
        let said = status(address, b"GET /metrics HTTP/1.1\r\n\r\n", "500");
        assert!(said.ends_with("no such luck\n"), "{said}");
    }

    #[test]
    fn a_slow_client_gets_a_timeout_and_holds_up_no_other() {
        let slow = |address: SocketAddr| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /met").unwrap();
            stream
        };
        // Here, the timeout is longer than the time limit of any test.
        let address = usual();
        let _slow = slow(address);
        status(address, GET, "200");
        let address = start(Duration::from_millis(300), |_| Ok(String::new()));
        let mut said = String::new();
        slow(address).read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 408"), "{said}");
    }

    #[test]
    fn a_refused_body_does_not_reset_the_response() {
        let address = usual();
        let mut post = b"POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\n".to_vec();
        post.resize(post.len() + 100_000, b'x');
        for _ in 0..100 {
            status(address, &post, "405");
        }
    }

    const GET: &[u8] = b"GET /metrics HTTP/1.1\r\n\r\n";

    /// Clients that connect and send nothing.
    fn silent(address: SocketAddr, n: usize) -> Vec<TcpStream> {
        (0..n)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect()
    }

    #[test]
    fn a_limited_number_of_clients_is_served_at_a_time_and_others_afterwards() {
        let address = usual();
        let mut silent = silent(address, CONNECTIONS);
        status(address, GET, "503");
        silent.pop();
        // Waits until the server has noticed. Some clients may be closed without a response
        // meanwhile.
        let is_served = || {
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(GET);
            let mut said = String::new();
            let _ = stream.read_to_string(&mut said);
            said.starts_with("HTTP/1.1 200")
        };
        while !is_served() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_refused_client_sees_why_and_no_reset() {
        for _ in 0..10 {
            let address = usual();
            let _silent = silent(address, CONNECTIONS);
            // This holds whether or not the request has arrived by then.
            for _ in 0..CONNECTIONS {
                status(address, GET, "503");
            }
        }
    }

    #[test]
    fn a_flood_of_silent_clients_is_closed() {
        let address = usual();
        let _silent = silent(address, 2 * CONNECTIONS);
        let mut closed = TcpStream::connect(address).unwrap();
        assert_eq!(closed.read(&mut [0; 16]).unwrap(), 0);
    }
}
