#!/usr/bin/env python3
"""Writes what open_clip and Pillow make of sentences and pictures: the expectations of tests/it/clip_parity.rs.

    python3 tests/reference/clip.py tests/fixtures/clip_parity [PHOTO …]

- tokens.json: sentences and their 77 ids by open_clip's SimpleTokenizer (trailing zeros left out).
- NAME.png: every third pixel, both ways, of the 224 × 224 square that torchvision's Resize (bicubic, antialias) and
  CenterCrop cut from a picture. The pictures are painted by integer arithmetic which the Rust test repeats, but for
  photo.jpg, the same painting stored by Pillow.
- cosines.json: for each picture, the cosine of the normalised values with those of the picture whose channels are swapped.

Photographs given as further arguments are never stored here: the square of each is written as NAME.square.png beside
the photograph, for the ignored test `photographs_are_preprocessed_as_pillow_does`.

Needs open_clip_torch 3.3.0 (ftfy 6.3.1, regex 2026.11.19), torch 2.15.0, torchvision 0.29.2, pillow 13.0.0, numpy 2.4.6.
"""

import json
import sys
from pathlib import Path

import numpy as np
from open_clip.tokenizer import SimpleTokenizer
from open_clip.transform import image_transform
from PIL import Image

PLAIN = [
    "a photo of a dog", "A Photo Of A CAT", "two people walking on the beach at sunset",
    "the kitchen, with a kettle on the stove", "a red bus in London", "Met Alice at the station",
    "who was in the garden yesterday?", "Saw a street and a car in bright light for 12 s.", "a", "I", "x y z",
    "the quick brown fox jumps over the lazy dog", "an astronaut riding a horse on the moon",
    "black-and-white photograph of a lighthouse", "state-of-the-art wearable", "e-mail me at someone@example.org",
    "https://example.org/path?query=1&other=2#part", "C:\\Users\\me\\file.txt", "#hashtag @mention", "snake_case and camelCase",
    "semi;colon:colon,comma.dot", "what?! really?!?!", "...", "!!!", "-", "--- ---", "(parentheses) [brackets] {braces}",
    "a/b\\c|d", "~tilde ^caret `backtick`", "percent 100% dollar $5 euro €5 pound £5 yen ¥5", "1 < 2 > 0", "a < b & c > d",
    "5 + 3 = 8", "3.14159", "1,000,000", "12345678901234567890", "2026-05-01T09:30:00+02:00", "room 101, floor 3", "v2.0.1-beta",
    "0", "007", "½ cup, ¾ spoon, x², H₂O", "Ⅳ and ④ and ٣ and ३", "1st 2nd 3rd 4th", "24/7", "a1b2c3", "№ 5",
]
CONTRACTIONS = [
    "I've seen it", "it's raining", "they're here", "don't do that", "I'm fine", "we'll see", "he'd go", "you've got mail",
    "IT'S LOUD", "Y'all'd've", "rock 'n' roll", "the dogs' bowls", "'quoted'", "''double''", "'s", "'S 'T 'RE 'VE 'M 'LL 'D",
    "o'clock", "D'Artagnan's horse", "it’s curly", "‘single’ and “double” curly", "„low“ quotes «guillemets» ‹single›", "it`s",
    "it´s", "ʼn modifier", "'sun' 'tis 'render 'velvet 'mud 'llama 'dad",
]
ACCENTS = [
    "café crème brûlée", "cafe\u0301 cre\u0300me", "naïve façade", "Ångström in Malmö", "straße Größe ÄÖÜ", "Ça va, garçon?",
    "El niño comió piñata", "São Paulo, Brasília", "Łódź, Kraków, Gdańsk", "Dvořák a Smetana", "İstanbul ISPARTA ığdır",
    "Ţară și țară", "Tiếng Việt có dấu", "Ελληνικά ΟΔΥΣΣΕΥΣ", "ΣΊΣΥΦΟΣ σίσυφος", "Привет, мир!", "ЁЖИК ёжик", "שלום עולם", "مرحبا بالعالم",
    "नमस्ते दुनिया", "สวัสดีชาวโลก", "გამარჯობა", "Բարեւ", "አማርኛ", "Ǆ ǅ ǆ Ǉ ǈ ǉ", "ĳsland Ĳssel", "ŉ afrikaans", "æther œuvre Æ Œ ø Ø ð Ð þ Þ",
    "ẞ ß ſ ſt", "K Å Ω", "e\u0301\u0323 o\u0308\u0304", "a\u030a A\u030a", "Zalgo: z\u0351\u0352a\u0316\u0317l\u0334g\u0335o\u0336",
    "donaudampfschifffahrtsgesellschaftskapitänsmütze", "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch",
]
CJK = [
    "你好，世界", "我的猫在厨房里", "東京タワーの写真", "ｶﾀｶﾅ 半角", "ＬＯＵＤ　ＮＯＩＳＥＳ", "ｆｕｌｌｗｉｄｔｈ １２３", "안녕하세요 세계", "한글 조합",
    "漢字かな交じり文", "「引用」と『二重』", "、。！？", "𠮷野家", "ㄅㄆㄇ", "ﾊﾟﾝ ﾄﾞｱ", "가각간", "￥１００ ￦", "中文 and English 混合", "々〆ヶ",
]
EMOJI = [
    "🐶", "a dog 🐕 and a cat 🐈", "👨‍👩‍👧‍👦 family", "👍🏽 thumbs", "🇩🇪🇫🇷 flags", "❤️ heart", "☕", "🏴󠁧󠁢󠁷󠁬󠁳󠁿 wales", "😀😀😀", "1️⃣ keycap",
    "™ © ® ✓ ✔ ★", "→ ← ↑ ↓ ⇒", "♥♦♣♠", "• bullet · dot ‣", "🤷‍♀️ whatever", "text😀text", "½🐱⅓", "𝓯𝓪𝓷𝓬𝔂 𝔣𝔯𝔞𝔨𝔱𝔲𝔯 𝟙𝟚𝟛",
]
ENTITIES = [
    "a dog &amp; a cat", "&lt;b&gt;bold&lt;/b&gt;", "<b>bold</b> &amp; plain", "&quot;quoted&quot;", "it&#39;s", "it&#x27;s", "&copy; 2026",
    "caf&eacute;", "P&EACUTE;REZ", "&amp;amp;", "&amp;lt;tag&amp;gt;", "&nbsp;space&nbsp;", "&hellip; and &mdash; and &ndash;",
    "AT&T", "R&D", "&", "&&", "& amp;", "&unknown;", "&notit;", "this&not that", "&#0;", "&#128;", "&#150;", "&#xD800;", "&#x110000;", "&#1;",
    "&#xFFFE;", "&frac12; &times; &divide;", "&NTILDE; &nTILDE;", "&hearts;&spades;", "&lsquo;a&rsquo; &ldquo;b&rdquo;", "&AMP &LT;", "&#65&#66;",
    "&semi;", "&Jscr;ohn &HilbertSpace;", "BUNDESSTRA&SZLIG;E", "&amp;ldquo;x&amp;rdquo;", "a &lt; b\nc &amp; d", "x < y\n&amp; z", "&#99999999999;",
    "&sup2; &Sup2 &ALEFSYM;", "&zwnj;&zwj;", "&bigtriangledown; &NotEqualTilde;",
]
SPACES = [
    "  leading and trailing  ", "tabs\tand\nnewlines\r\nand\rreturns", "a\u00a0no-break\u2003em\u2009thin\u3000wide", "zero\u200bwidth", "soft\u00adhyphen",
    "line\u2028separator\u2029paragraph", "next\u0085line", "\ufeffbom", "bell\u0007null\u0000", "\u001b[31mred\u001b[0m", "\u001b[31", "form\u000cfeed\u000bvertical",
    "many      spaces", "", " ", "\n\n", "left\u200eto\u200fright\u202a\u202c", "object\ufffcreplacement\ufffd", "unit\u001fseparator",
    "ogham\u1680space mongolian\u180evowel", "c1\u0091quotes\u0092 and \u0096dash", "tag\u206adeprecated", "word\u2060joiner",
]
SPECIAL = [
    "<start_of_text>", "<end_of_text>", "a <start_of_text> b <end_of_text> c", "<START_OF_TEXT>", "hi!<end_of_text>", "<|endoftext|>", "<|startoftext|>",
    "ﬁne ﬂour ﬀ ﬃ ﬄ ﬅ ﬆ",
]
LONG = [
    "word " * 74, "word " * 75, "word " * 76, "word " * 300, "a photo of " + "a very " * 60 + "long sentence", "ab" * 200, "x" * 76, "1 " * 90, "1234567890" * 10,
    "🐶" * 40, "漢" * 80, "never-ending " * 30, "! " * 80, "a, " * 60, "Ü" * 120, "don't " * 50, "supercalifragilisticexpialidocious " * 15,
]
WRONGLY_DECODED = [
    "schÃ¶n und groÃŸ", "itâ€™s", "cafÃ© crÃ¨me", "Â£5 and Â°C", "â€œquotedâ€\u009d", "æ—¥æœ¬èªž", "ðŸ˜€ smile", "Ã¢â‚¬â„¢ twice", "Ã is no letter here",
]
SENTENCES = PLAIN + CONTRACTIONS + ACCENTS + CJK + EMOJI + ENTITIES + SPACES + SPECIAL + WRONGLY_DECODED + LONG


def painting(width, height):
    """Sky, hills, sun, a fence and grain; integers only, so that any language paints the same."""
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    u, v = x * 1024 // width, y * 1024 // height
    grain = ((x * 73856093 ^ y * 19349663) >> 5) % 23 - 11
    red, green, blue = 90 + v // 8, 140 + v // 16, 230 - v // 8
    sun = (u - 760) ** 2 + (v - 240) ** 2 < 14000
    hill = v > 520 + abs((u * 3) % 1024 - 512) // 3
    fence = hill & (u % 64 < 20) & (v > 640)
    for mask, colour in ((sun, (250, 225, 120)), (hill, (60, 120, 50)), (fence, (150, 100, 60))):
        red, green, blue = (np.where(mask, value, channel) for value, channel in zip(colour, (red, green, blue)))
    return np.clip(np.stack([red, green, blue], -1) + grain[..., None], 0, 255).astype(np.uint8)


def checkerboard(width, height):
    y, x = np.mgrid[0:height, 0:width]
    return np.repeat((((x + y) % 2) * 255).astype(np.uint8)[..., None], 3, -1)


def plain(colour):
    return np.tile(np.array(colour, np.uint8), (360, 640, 1))


PICTURES = {
    "painting": painting(640, 480),
    "tall": painting(301, 1207),
    "wide": painting(1500, 211),
    "small": painting(97, 61),
    "exact": painting(224, 224),
    "checkerboard": checkerboard(1920, 1080),
    "red": plain((255, 0, 0)),
    "blue": plain((0, 0, 255)),
}


def square(transform, image):
    """The 8-bit square before it is normalised, checked against what the whole transform gives."""
    resize, crop = transform.transforms[:2]
    assert type(resize).__name__ == "Resize" and type(crop).__name__ == "CenterCrop", transform
    cut = np.asarray(crop(resize(image)))
    mean, std = np.array(transform.transforms[-1].mean), np.array(transform.transforms[-1].std)
    values = ((cut / 255 - mean) / std).transpose(2, 0, 1)
    assert abs(transform(image).numpy() - values).max() < 1e-5
    return cut, values


def cosine(a, b):
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def main(folder, photographs):
    folder.mkdir(parents=True, exist_ok=True)
    sentences = list(dict.fromkeys(SENTENCES))
    ids = SimpleTokenizer()(sentences).numpy()
    rows = [{"text": text, "ids": [int(value) for value in np.trim_zeros(row, "b")]} for text, row in zip(sentences, ids)]
    (folder / "tokens.json").write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")
    transform = image_transform(224, is_train=False)
    Image.fromarray(painting(640, 480)).save(folder / "photo.jpg", quality=60)
    pictures = {name: Image.fromarray(pixels) for name, pixels in PICTURES.items()}
    pictures["photo"] = Image.open(folder / "photo.jpg")
    swapped = {}
    for name, image in pictures.items():
        cut, values = square(transform, image)
        Image.fromarray(cut[::3, ::3]).save(folder / f"{name}.png", optimize=True)
        swapped[name] = round(cosine(values, square(transform, Image.fromarray(np.asarray(image)[..., ::-1].copy()))[1]), 4)
    (folder / "cosines.json").write_text(json.dumps(swapped, indent=1) + "\n")
    print(len(rows), "sentences;", swapped)
    for photograph in photographs:
        cut, _ = square(transform, Image.open(photograph).convert("RGB"))
        Image.fromarray(cut).save(photograph + ".square.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
