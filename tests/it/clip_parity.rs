//! CLIP's preprocessing and tokenizer against Pillow and open_clip (expectations by tests/reference/clip.py).

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test pictures are made of small numbers")]

use percept::domain::reading::PixelFormat;
use percept::perception::image;
use percept::perception::pixels;
use percept::perception::pixels::RgbImage;
use percept::perception::tokenizer::ClipTokenizer;
use std::path::PathBuf;

#[derive(serde::Deserialize)]
struct Sentence {
    text: String,
    ids: Vec<i64>,
}

#[test]
fn sentences_become_the_tokens_of_the_reference() {
    let sentences: Vec<Sentence> = serde_json::from_slice(&fixture("tokens.json")).unwrap();
    let tokenizer = ClipTokenizer::new();

    let wrong: Vec<String> = sentences
        .iter()
        .filter_map(|sentence| {
            let ids = tokenizer.encode(&sentence.text);
            let used = ids.iter().rposition(|&id| id != 0).map_or(0, |last| last + 1);
            (ids[..used] != sentence.ids)
                .then(|| format!("{:?}: {:?}, not {:?}", sentence.text, &ids[..used], sentence.ids))
        })
        .collect();

    assert!(sentences.len() >= 200);
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), sentences.len(), wrong.join("\n"));
}

#[test]
fn pictures_are_resized_and_cropped_as_pillow_does() {
    for (name, picture) in pictures() {
        let (found, expected) = (sampled_square(&picture), expected_square(name));

        let similarity = cosine(&normalised(&found), &normalised(&expected));
        let apart = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max();

        assert!(similarity >= 0.999, "{name}: cosine {similarity}");
        // JPEG decoders differ by a level or two; the resize itself must not.
        assert!(apart <= Some(if name == "photo" { 8 } else { 1 }), "{name}: {apart:?} levels apart");
    }
}

#[test]
fn swapped_channels_would_be_noticed() {
    for (name, picture) in pictures().into_iter().filter(|(name, _)| !["checkerboard"].contains(name)) {
        let swapped: Vec<u8> = picture.pixels().chunks(3).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect();
        let swapped = RgbImage::new(picture.width_px(), picture.height_px(), swapped).unwrap();

        let similarity = cosine(&normalised(&sampled_square(&swapped)), &normalised(&expected_square(name)));

        assert!(similarity < 0.95, "{name}: cosine {similarity}");
    }
}

fn pictures() -> Vec<(&'static str, RgbImage)> {
    vec![
        ("painting", painting(640, 480)),
        ("tall", painting(301, 1207)),
        ("wide", painting(1500, 211)),
        ("small", painting(97, 61)),
        ("exact", painting(224, 224)),
        ("checkerboard", painted(1920, 1080, |x, y| [((x + y) % 2 * 255) as u8; 3])),
        ("red", painted(640, 360, |_, _| [255, 0, 0])),
        ("blue", painted(640, 360, |_, _| [0, 0, 255])),
        ("photo", pixels::decode(PixelFormat::Jpeg, 0, 0, &fixture("photo.jpg")).unwrap()),
    ]
}

/// The same picture as `painting` of tests/reference/clip.py.
fn painting(width: u32, height: u32) -> RgbImage {
    painted(width, height, |x, y| {
        let (u, v) = (x * 1024 / i64::from(width), y * 1024 / i64::from(height));
        let grain = (((x * 73_856_093) ^ (y * 19_349_663)) >> 5) % 23 - 11;
        let is_sun = (u - 760).pow(2) + (v - 240).pow(2) < 14_000;
        let is_hill = v > 520 + ((u * 3) % 1024 - 512).abs() / 3;
        let is_fence = is_hill && u % 64 < 20 && v > 640;
        let colour = match (is_fence, is_hill, is_sun) {
            (true, ..) => [150, 100, 60],
            (_, true, _) => [60, 120, 50],
            (.., true) => [250, 225, 120],
            _ => [90 + v / 8, 140 + v / 16, 230 - v / 8],
        };
        colour.map(|value| (value + grain).clamp(0, 255) as u8)
    })
}

fn painted(width: u32, height: u32, paint: impl Fn(i64, i64) -> [u8; 3]) -> RgbImage {
    let pixels = (0..i64::from(height))
        .flat_map(|y| (0..i64::from(width)).map(move |x| (x, y)))
        .flat_map(|(x, y)| paint(x, y))
        .collect();
    RgbImage::new(width, height, pixels).unwrap()
}

/// Every third pixel of the square, both ways, as the expectations keep it.
fn sampled_square(picture: &RgbImage) -> Vec<u8> {
    let square = image::middle_square(picture, 224);
    square.pixels().chunks(224 * 3).step_by(3).flat_map(|row| row.chunks(3).step_by(3)).flatten().copied().collect()
}

fn expected_square(name: &str) -> Vec<u8> {
    pixels::decode(PixelFormat::Png, 0, 0, &fixture(&format!("{name}.png"))).unwrap().pixels().to_vec()
}

/// The values a model would read, through the same code as a whole picture.
fn normalised(sample: &[u8]) -> Vec<f32> {
    let side = ((sample.len() / 3) as f64).sqrt() as u32;
    image::preprocess(&RgbImage::new(side, side, sample.to_vec()).unwrap(), side)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn fixture(name: &str) -> Vec<u8> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/clip_parity").join(name);
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// `PERCEPT_PHOTOGRAPHS=FOLDER`: photographs, and beside each the square that tests/reference/clip.py made of it.
#[test]
#[ignore = "needs photographs, which are not ours to commit"]
fn photographs_are_preprocessed_as_pillow_does() {
    let folder = std::env::var_os("PERCEPT_PHOTOGRAPHS").expect("PERCEPT_PHOTOGRAPHS names a folder");
    let read = |file: &std::path::Path| {
        let bytes = std::fs::read(file).unwrap();
        pixels::decode(pixels::sniff(&bytes).unwrap(), 0, 0, &bytes).unwrap()
    };
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let square = entry.unwrap().path();
        let Some(photograph) = square.to_str().and_then(|path| path.strip_suffix(".square.png")) else { continue };

        let found = image::preprocess(&read(photograph.as_ref()), 224);
        let similarity = cosine(&found, &image::preprocess(&read(&square), 224));

        println!("{photograph}: {similarity:.6}");
        assert!(similarity >= 0.999, "{photograph}: cosine {similarity}");
        count += 1;
    }
    assert!(count > 0);
}
