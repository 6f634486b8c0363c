//! Downloads from servers that behave, break off, lie, or do not know what was asked.

use percept::domain::disposition::Disposition;
use percept::perception::model::ModelFileError;

use crate::models::Bench;
use crate::models::content;
use crate::models::server::Reply;
use crate::models::server::Request;
use crate::models::server::Server;
use crate::models::sha256;

/// A bench whose one source is this server.
fn bench(answer: impl Fn(&Request, usize) -> Reply + Send + 'static) -> (Bench, Server) {
    let server = Server::start(answer);
    (Bench::new(&[server.url("/a.bin")]), server)
}

fn assert_right(bench: &Bench) {
    assert_eq!(bench.names(), ["a.bin"]);
    assert!(std::fs::read(bench.file("a.bin")).unwrap() == content(), "other bytes");
}

#[test]
fn a_whole_download_gets_its_name() {
    let (bench, server) = bench(|_, _| Reply::whole(&content()));

    let steps = bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.ranges(), [None]);
    assert!(steps[0].starts_with("Asking"), "{steps:?}");
    assert!(steps.contains(&"Received { bytes: 300000, total_bytes: 300000 }".to_owned()), "{steps:?}");
    assert_eq!(steps[steps.len() - 2..], ["Checking", "Ready"]);
}

#[test]
fn a_download_goes_on_where_an_earlier_one_stopped() {
    let (bench, server) = bench(|request, _| Reply::ranged(&content(), request));
    bench.write("a.bin.part", &content()[..123_456]);

    bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.ranges(), [Some(123_456)]);
}

#[test]
fn a_server_that_knows_no_ranges_sends_it_all_again() {
    let (bench, server) = bench(|_, _| Reply::whole(&content()));
    bench.write("a.bin.part", &content()[..123_456]);

    bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.ranges(), [Some(123_456)]);
}

#[test]
fn a_broken_connection_is_taken_up_at_the_byte_where_it_broke() {
    let (bench, server) = bench(|request, earlier| {
        let reply = Reply::ranged(&content(), request);
        if earlier < 2 { reply.cut_after(100_000) } else { reply }
    });

    bench.fetch().unwrap();

    assert_right(&bench);
    let ranges = server.ranges();
    assert_eq!(ranges.len(), 3);
    assert_eq!(ranges[0], None);
    assert!(ranges[1] > Some(0) && ranges[2] > ranges[1], "{ranges:?}");
}

#[test]
fn a_connection_that_always_breaks_is_given_up_and_what_came_is_kept() {
    let (bench, server) = bench(|request, earlier| {
        let reply = Reply::ranged(&content(), request);
        if earlier == 0 { reply.cut_after(100_000) } else { reply.cut_after(0) }
    });

    let error = bench.fetch().unwrap_err();

    assert_eq!(server.requests().len(), 4, "three barren requests after the one that brought bytes");
    assert!(error.to_string().contains("broke off"), "{error}");
    assert_eq!(error.disposition(), Disposition::Retry);
    assert_eq!(bench.names(), ["a.bin.part"]);
    assert_eq!(std::fs::read(bench.file("a.bin.part")).unwrap(), content()[..100_000]);
}

#[test]
fn an_endless_drip_is_given_up() {
    let (bench, server) = bench(|request, _| Reply::ranged(&content(), request).cut_after(10));

    let error = bench.fetch().unwrap_err();

    assert_eq!(server.requests().len(), 20);
    assert!(error.to_string().contains("200 bytes"), "{error}");
}

#[test]
fn the_second_address_serves_when_the_first_has_no_such_file() {
    for status in ["404 Not Found", "500 Internal Server Error", "429 Too Many Requests"] {
        let server = Server::start(move |request, _| match request.path.as_str() {
            "/first" => Reply::status(status),
            _ => Reply::whole(&content()),
        });
        let bench = Bench::new(&[server.url("/first"), server.url("/second")]);

        let steps = bench.fetch().unwrap();

        assert_right(&bench);
        assert_eq!(server.requests().len(), 2, "{status}: each address is asked once");
        assert!(steps.iter().any(|step| step.starts_with("Refused") && step.contains(status)), "{steps:?}");
    }
}

#[test]
fn when_no_address_has_it_each_answer_is_told() {
    let server = Server::start(|request, _| match request.path.as_str() {
        "/first" => Reply::status("404 Not Found"),
        _ => Reply::status("503 Service Unavailable"),
    });
    let bench = Bench::new(&[server.url("/first"), server.url("/second")]);

    let error = bench.fetch().unwrap_err().to_string();

    assert!(error.starts_with("cannot get a.bin of model m: "), "{error}");
    assert!(error.contains(&format!("{}: answered 404 Not Found", server.url("/first"))), "{error}");
    assert!(error.contains("503 Service Unavailable"), "{error}");
    assert!(error.contains("PERCEPT_MODEL_MIRROR"), "{error}");
    assert_eq!(bench.names(), Vec::<String>::new());
}

#[test]
fn a_host_that_is_not_there_is_a_cause_among_others() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(|_, _| Reply::whole(&content()));
    let bench = Bench::new(&[format!("http://{free}/a.bin"), server.url("/a.bin")]);

    let steps = bench.fetch().unwrap();

    assert_right(&bench);
    let refused = format!("Refused {{ cause: \"http://{free}/a.bin: cannot be reached (Connection refused");
    assert!(steps.iter().any(|step| step.starts_with(&refused)), "{steps:?}");
    let asked = steps.iter().filter(|step| step.starts_with("Asking")).count();
    assert_eq!(asked, 2, "each address once: {steps:?}");
}

#[test]
fn a_redirect_is_followed_and_keeps_the_range() {
    let (bench, server) = bench(|request, _| match request.path.as_str() {
        "/a.bin" => Reply::redirect("/elsewhere"),
        _ => Reply::ranged(&content(), request),
    });
    bench.write("a.bin.part", &content()[..5]);

    bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.ranges(), [Some(5), Some(5)]);
}

#[test]
fn a_redirect_in_a_circle_is_given_up() {
    let (bench, server) = bench(|_, _| Reply::redirect("/a.bin"));

    let error = bench.fetch().unwrap_err().to_string();

    assert!(error.contains("redirect"), "{error}");
    assert!(server.requests().len() < 20, "{}", server.requests().len());
}

#[test]
fn a_lie_of_the_right_length_is_removed_and_told_with_both_hashes() {
    let mut lie = content();
    lie[7] ^= 1;
    let (bench, server) = bench({
        let lie = lie.clone();
        move |_, _| Reply::whole(&lie)
    });

    let error = bench.fetch().unwrap_err().to_string();

    assert!(error.contains(&format!("expected {}, found {}", sha256(&content()), sha256(&lie))), "{error}");
    assert_eq!(bench.names(), Vec::<String>::new());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn wrong_bytes_of_an_earlier_try_cost_one_more_request_and_no_more() {
    let (bench, server) = bench(|request, _| Reply::ranged(&content(), request));
    bench.write("a.bin.part", &[0; 1_000]);

    bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.ranges(), [Some(1_000), None]);
}

#[test]
fn a_file_announced_with_another_length_is_not_even_read() {
    for length in [299_999, 300_001, 4_000_000] {
        let (bench, _server) = bench(move |_, _| Reply::whole(&vec![0; length]));

        let steps = bench.fetch().unwrap_err().to_string();

        assert!(steps.contains(&format!("offers a file of {length} bytes, not 300000")), "{steps}");
        assert_eq!(bench.names(), Vec::<String>::new());
    }
}

#[test]
fn a_file_that_does_not_end_is_read_no_further_than_it_may_be_long() {
    let (bench, _server) = bench(|_, _| Reply::without_length(&vec![0; 10_000_000]));
    let mut received = 0;

    let error = bench
        .open()
        .unwrap()
        .fetch("m", None, &mut |progress| {
            if let percept::perception::model::fetch::Step::Received { bytes, .. } = progress.step {
                received = bytes;
            }
        })
        .unwrap_err();

    assert!(error.to_string().contains("sends more than the 300000 bytes"), "{error}");
    assert!(received <= 300_000, "{received}");
    assert_eq!(bench.names(), Vec::<String>::new());
}

#[test]
fn a_length_is_not_needed_when_the_bytes_are_right() {
    let (bench, _server) = bench(|_, _| Reply::without_length(&content()));

    bench.fetch().unwrap();

    assert_right(&bench);
}

#[test]
fn another_range_than_asked_for_is_refused() {
    let (bench, _server) = bench(|_, _| {
        let headers = ["Content-Range: bytes 7-299999/300000".to_owned(), "Content-Length: 299993".to_owned()];
        Reply::raw("206 Partial Content", &headers, &content()[7..])
    });
    bench.write("a.bin.part", &content()[..5]);

    let error = bench.fetch().unwrap_err().to_string();

    assert!(error.contains("another range"), "{error}");
    assert_eq!(std::fs::read(bench.file("a.bin.part")).unwrap(), content()[..5], "what was kept stays");
}

#[test]
fn a_server_without_the_rest_is_asked_for_the_whole() {
    let (bench, server) = bench(|request, _| match request.from {
        Some(_) => Reply::status("416 Range Not Satisfiable"),
        None => Reply::whole(&content()),
    });
    bench.write("a.bin.part", &content()[..5]);

    bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.ranges(), [Some(5), None]);
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let (bench, server) = bench(|request, earlier| {
        Reply::ranged(&content(), request).cut_after(if earlier == 0 { 9 } else { 0 }).then_silence()
    });

    let error = bench.fetch().unwrap_err();

    assert!(error.to_string().contains("after 9 bytes"), "{error}");
    assert!(error.to_string().contains("no answer in time"), "{error}");
    assert_eq!(server.requests().len(), 4);
    assert_eq!(bench.names(), ["a.bin.part"]);
}

#[test]
fn an_earlier_try_that_is_too_long_is_thrown_away() {
    let (bench, server) = bench(|request, _| Reply::ranged(&content(), request));
    bench.write("a.bin.part", &vec![0; 300_001]);

    bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.ranges(), [None]);
}

#[test]
fn a_complete_earlier_try_needs_no_request() {
    let (bench, server) = bench(|_, _| Reply::status("404 Not Found"));
    bench.write("a.bin.part", &content());

    bench.fetch().unwrap();

    assert_right(&bench);
    assert_eq!(server.requests(), []);
}

#[test]
fn a_disk_without_room_is_seen_before_anything_is_asked() {
    let server = Server::start(|_, _| Reply::whole(&content()));
    let text = crate::models::manifest_text(&content(), &[server.url("/a.bin")]);
    let bench = Bench::with_manifest(&text.replace("bytes = 300000", "bytes = 4611686018427387904"));

    let error = bench.fetch().unwrap_err();

    assert!(matches!(error, ModelFileError::DiskFull { needed: 4_611_686_018_427_387_904, .. }), "{error}");
    assert_eq!(error.disposition(), Disposition::Stop);
    assert_eq!(server.requests(), []);
}

#[test]
fn a_disk_that_fills_up_on_the_way_keeps_nothing_of_the_file() {
    let (bench, _server) = bench(|_, _| Reply::whole(&content()));
    std::fs::create_dir_all(bench.models_dir().join("m")).unwrap();
    std::os::unix::fs::symlink("/dev/full", bench.file("a.bin.part")).unwrap();

    let error = bench.fetch().unwrap_err();

    assert!(matches!(error, ModelFileError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains("300000 more bytes"), "{error}");
    assert_eq!(bench.names(), Vec::<String>::new());
}
