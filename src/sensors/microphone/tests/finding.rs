//! Which device is found and opened.

use super::*;

#[test]
fn a_microphone_that_was_card_1_is_found_as_card_2_and_hdmi_is_never_opened() {
    let mut bench = Bench::with(&Config { device: USB.to_owned(), ..Config::default() }, vec![card(USB, 1)]);
    bench.told();
    bench.hear();
    assert_eq!(bench.told(), ["0 sound 1600"]);

    bench.fake.lock().inputs = vec![hdmi(1), card(USB, 2)];
    bench.sink().broken(Failure::unplugged("Device disconnected"));
    let lost = bench.told();
    bench.pass(500);
    bench.told();
    bench.hear();

    assert_eq!(lost, ["100 unplugged: Device disconnected"]);
    assert_eq!(bench.told(), ["600 sound 1600"]);
    assert_eq!(bench.fake.lock().opened, ["hw:1", "hw:2"]);
}

#[test]
fn a_configured_hdmi_device_is_refused_in_words() {
    let config = Config { device: "microphone:card-vc4hdmi".to_owned(), ..Config::default() };
    let mut bench = Bench::with(&config, vec![hdmi(1), card(USB, 2)]);

    assert_eq!(bench.told(), ["0 unusable: card-vc4hdmi is never opened: HDMI carries no microphone"]);
    assert_eq!(bench.fake.lock().opened, [""; 0]);
}

#[test]
fn an_empty_list_then_a_generic_name_then_the_real_one() {
    let config = Config { device: USB.to_owned(), ..Config::default() };
    let mut bench = Bench::with(&config, Vec::new());
    let mut told = Vec::new();
    while bench.fake.lock().opened.is_empty() && bench.now_ms() < 60_000 {
        told.extend(bench.poll().iter().map(tell));
        bench.pass(100);
        if bench.now_ms() == 3_000 {
            bench.fake.lock().inputs = vec![Input::server("default")];
        }
        if bench.now_ms() == 8_000 {
            bench.fake.lock().inputs = vec![Input::server("default"), card(USB, 1)];
        }
    }
    bench.hear();

    assert_eq!(told[0], "0 unplugged: no microphone usb-0d8c:0014-A1; there is none at all");
    assert!(told[1..].iter().all(|line| line.contains(" unplugged: no microphone usb-0d8c:0014-A1; there is ")));
    assert!(bench.now_ms() > 8_000);
    assert_eq!(bench.told().len(), 1);
    assert_eq!(bench.fake.lock().opened, ["hw:1"]);
    assert_eq!(bench.state(), State::Running);
}

#[test]
fn without_a_configured_name_the_first_that_opens_gives_the_source_its_name() {
    let mut bench = Bench::with(&Config::default(), vec![Input::server("default"), hdmi(0), card("card-PCH", 3)]);
    bench.told();
    bench.hear();

    let reading = bench.poll().unwrap();

    assert_eq!(reading.source, SourceId::new("microphone:card-PCH"));
    assert_eq!(bench.sensor.source().as_str(), "microphone:card-PCH");
    assert_eq!(bench.fake.lock().opened, ["hw:3"]);
}

#[test]
fn one_channel_for_eight_configured_ones_is_an_error_that_says_what_the_device_offers() {
    let config = Config { channels: 8, ..Config::default() };
    let mut bench = Bench::with(&config, vec![card(USB, 1)]);

    let told = bench.told();

    let sentence = "8 channels are configured, but the device offers only 1 channel; 16000 Hz; I16";
    assert_eq!(told, [format!("0 unusable: {USB}: {sentence}")]);
    assert_eq!(bench.state(), State::Lost);
    bench.fake.lock().offers = vec![offer(1), offer(8)];
    bench.pass(500);
    bench.told();
    assert_eq!(bench.fake.lock().opened, ["hw:1"]);
}

#[test]
fn the_list_names_what_is_refused_and_why() {
    let fake = Shared::default();
    fake.lock().inputs = vec![hdmi(0), card(USB, 1), Input::server("default")];
    fake.lock().offers = vec![offer(1)];

    let lines: Vec<String> = list_of(&fake)
        .unwrap()
        .into_iter()
        .map(|found| format!("{} | {} | {}", found.source, found.detail, found.refused.unwrap_or_default()))
        .collect();

    assert_eq!(
        lines,
        [
            "microphone:card-vc4hdmi | card 0 [Device] device 0 | HDMI carries no microphone",
            "microphone:usb-0d8c:0014-A1 | card 1 [Device] device 0: 1 channel; 16000 Hz; I16 | ",
            "microphone:default | sound server: 1 channel; 16000 Hz; I16 | ",
        ]
    );
}
