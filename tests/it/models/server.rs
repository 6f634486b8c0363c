//! A web server on this machine that answers exactly as a test wants, also wrongly.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread::JoinHandle;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) path: String,
    /// First byte of `Range: bytes=N-`.
    pub(super) from: Option<usize>,
}

/// What to answer: a head, a body, and then the connection is closed, or kept silent.
pub(super) struct Reply {
    head: String,
    body: Vec<u8>,
    is_silent: bool,
}

/// Runs until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves what `answer` says; it is given the request and how many came before it.
    pub(super) fn start(answer: impl Fn(&Request, usize) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let thread = std::thread::spawn(move || serve(&listener, &seen, &answer));
        Self { address, requests, thread: Some(thread) }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The first byte asked for, by request.
    pub(super) fn ranges(&self) -> Vec<Option<usize>> {
        self.requests().into_iter().map(|request| request.from).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(self.address) {
            let _ = stream.write_all(b"GET /stop HTTP/1.1\r\n\r\n");
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, seen: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request, usize) -> Reply) {
    let mut silent = Vec::new();
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        let Some(request) = read_request(&mut stream) else { continue };
        if request.path == "/stop" {
            return;
        }
        let earlier = seen.lock().unwrap().len();
        seen.lock().unwrap().push(request.clone());
        let reply = answer(&request, earlier);
        // The client may hang up before it has all; that is its right.
        let _ = stream.write_all(reply.head.as_bytes()).and_then(|()| stream.write_all(&reply.body));
        if reply.is_silent {
            silent.push(stream);
        }
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?.to_ascii_lowercase();
    let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
    Some(Request {
        path: head.split(' ').nth(1)?.to_owned(),
        from: range.and_then(|range| range.trim_end_matches('-').parse().ok()),
    })
}

impl Reply {
    /// A status line, headers, and a body sent as it is.
    pub(super) fn raw(status: &str, headers: &[String], body: &[u8]) -> Self {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        Self {
            head: format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n"),
            body: body.to_vec(),
            is_silent: false,
        }
    }

    pub(super) fn status(status: &str) -> Self {
        Self::raw(status, &["Content-Length: 0".to_owned()], b"")
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self::raw("302 Found", &[format!("Location: {to}"), "Content-Length: 0".to_owned()], b"")
    }

    /// The whole file, whatever range was asked for.
    pub(super) fn whole(file: &[u8]) -> Self {
        Self::raw("200 OK", &[format!("Content-Length: {}", file.len())], file)
    }

    /// The file without a word about its length.
    pub(super) fn without_length(file: &[u8]) -> Self {
        Self::raw("200 OK", &[], file)
    }

    /// The range that was asked for, or the whole.
    pub(super) fn ranged(file: &[u8], request: &Request) -> Self {
        let Some(from) = request.from else { return Self::whole(file) };
        if from >= file.len() {
            return Self::raw("416 Range Not Satisfiable", &["Content-Length: 0".to_owned()], b"");
        }
        let range = format!("Content-Range: bytes {from}-{}/{}", file.len() - 1, file.len());
        let length = format!("Content-Length: {}", file.len() - from);
        Self::raw("206 Partial Content", &[range, length], &file[from..])
    }

    /// The same, but the connection breaks after `bytes` bytes of body.
    pub(super) fn cut_after(mut self, bytes: usize) -> Self {
        self.body.truncate(bytes);
        self
    }

    /// The same, but afterwards the connection stays open and silent.
    pub(super) fn then_silence(mut self) -> Self {
        self.is_silent = true;
        self
    }
}
