#!/usr/bin/env python3
"""Trains the small CLIP under tests/fixtures/clip: real towers, drawn pictures, plain sentences.

The graph has the shape of the published exports (Hugging Face CLIPModel: ViT image tower, causal text transformer
pooled at the end-of-text token, projections, masks built with Where and Expand, dynamic batch, the same names of
inputs and outputs), only narrow: 64-pixel pictures, 8-pixel patches, width 64, three layers. Token ids are those of
CLIP's own vocabulary; a table maps the few that occur to the rows of a small embedding, every other id to one row.

Pictures show one shape of one colour at one place. Eight of the combinations are never shown in training; their
pictures (PNG) and sentences (pairs.json) are written beside the model.

    python3 models/train_fixture_clip.py tests/fixtures/clip

Needs torch 2.15.0, transformers 4.49.0, open_clip_torch 3.3.0, onnx 1.23.2, onnxruntime 1.32.0, pillow 13.0.0,
numpy 2.4.6. Takes about five minutes on one core.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

SEED = 7
SIDE = 64
STEPS = 1200
BATCH = 128
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
STD = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)

COLOURS = {
    "red": (215, 40, 40),
    "green": (45, 160, 60),
    "blue": (45, 80, 215),
    "yellow": (235, 205, 50),
    "purple": (140, 60, 170),
    "white": (245, 245, 245),
}
SHAPES = {
    "circle": ["circle", "disc"],
    "square": ["square", "box"],
    "triangle": ["triangle"],
    "cross": ["cross", "plus sign"],
    "ring": ["ring"],
}
PLACES = {
    "top left": (-0.45, -0.45),
    "top right": (0.45, -0.45),
    "bottom left": (-0.45, 0.45),
    "bottom right": (0.45, 0.45),
    "middle": (0.0, 0.0),
}
PLACE_WORDS = {
    "top left": ["at the top left", "in the upper left corner", "on the top left"],
    "top right": ["at the top right", "in the upper right corner", "on the top right"],
    "bottom left": ["at the bottom left", "in the lower left corner", "on the bottom left"],
    "bottom right": ["at the bottom right", "in the lower right corner", "on the bottom right"],
    "middle": ["in the middle", "in the centre", "in the center"],
}
TEMPLATES = [
    "a {colour} {shape} {place}",
    "a photo of a {colour} {shape} {place}",
    "a picture of a {colour} {shape} {place}",
    "there is a {colour} {shape} {place}",
    "{place} there is a {colour} {shape}",
    "the {shape} {place} is {colour}",
]
HELD_OUT = [
    ("red", "circle", "top left"),
    ("green", "square", "top right"),
    ("blue", "triangle", "bottom left"),
    ("yellow", "cross", "bottom right"),
    ("purple", "ring", "middle"),
    ("white", "circle", "bottom right"),
    ("red", "triangle", "top right"),
    ("blue", "ring", "top left"),
]


def draw(colour, shape, place, side, rng):
    """One picture, side × side × 3 bytes, edges smoothed by drawing at three times the size."""
    axis = (np.arange(side * 3) + 0.5) / (side * 3) * 2 - 1
    x, y = np.meshgrid(axis, axis)
    cx, cy = (value + rng.uniform(-0.12, 0.12) for value in PLACES[place])
    radius = rng.uniform(0.26, 0.42)
    x, y = (x - cx) / radius, (y - cy) / radius
    inside = {
        "circle": lambda: x * x + y * y < 1,
        "square": lambda: np.maximum(abs(x), abs(y)) < 0.9,
        "triangle": lambda: (y < 0.8) & (y > 2 * abs(x) - 1),
        "cross": lambda: (np.minimum(abs(x), abs(y)) < 0.33) & (np.maximum(abs(x), abs(y)) < 1),
        "ring": lambda: (x * x + y * y < 1) & (x * x + y * y > 0.36),
    }[shape]()
    cover = inside.reshape(side, 3, side, 3).mean((1, 3))[..., None]
    ground = rng.uniform(60, 120) + rng.uniform(-12, 12, 3)
    paint = np.array(COLOURS[colour]) + rng.uniform(-18, 18, 3)
    picture = ground * (1 - cover) + paint * cover + rng.normal(0, 3, (side, side, 1))
    return np.clip(picture, 0, 255).astype(np.uint8)


def sentence(colour, shape, place, choose):
    return choose(TEMPLATES).format(colour=colour, shape=choose(SHAPES[shape]), place=choose(PLACE_WORDS[place]))


def pixels(pictures):
    values = (np.stack(pictures).astype(np.float32) / 255 - MEAN) / STD
    return torch.from_numpy(np.ascontiguousarray(values.transpose(0, 3, 1, 2)))


class FixtureClip(torch.nn.Module):
    """CLIPModel behind a table from CLIP's token ids to the rows of a small embedding."""

    def __init__(self, used_ids):
        super().__init__()
        table = torch.zeros(49408, dtype=torch.int32)
        for row, token in enumerate(sorted(used_ids)):
            table[token] = row
        self.register_buffer("table", table)
        tower = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4)
        text = CLIPTextConfig(vocab_size=len(used_ids), max_position_embeddings=77, projection_dim=64,
                              eos_token_id=2, bos_token_id=0, pad_token_id=1, **tower)
        vision = CLIPVisionConfig(image_size=SIDE, patch_size=8, projection_dim=64, **tower)
        config = CLIPConfig.from_text_vision_configs(text_config=text, vision_config=vision, projection_dim=64)
        config._attn_implementation = "eager"
        self.clip = CLIPModel(config)

    def forward(self, input_ids, pixel_values, attention_mask):
        rows = self.table[input_ids].long()
        out = self.clip(input_ids=rows, pixel_values=pixel_values, attention_mask=attention_mask)
        return out.logits_per_image, out.logits_per_text, out.text_embeds, out.image_embeds


def train(model, tokenizer, combinations, rng):
    choose = lambda options: options[rng.integers(len(options))]
    pool = {combination: [draw(*combination, SIDE, rng) for _ in range(60)] for combination in combinations}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=STEPS, pct_start=0.1)
    target = torch.arange(BATCH)
    for step in range(STEPS):
        batch = [combinations[index] for index in rng.permutation(len(combinations))[:BATCH]]
        ids = tokenizer([sentence(*combination, choose) for combination in batch])
        ids = ids[:, : int((ids != 0).sum(1).max())]  # causal: what follows the longest sentence changes nothing
        pictures = pixels([choose(pool[combination]) for combination in batch])
        logits = model(ids, pictures, (ids != 0).long())[0]
        cross_entropy = torch.nn.functional.cross_entropy
        loss = (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            model.clip.logit_scale.clamp_(max=np.log(100))
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f} scale {model.clip.logit_scale.exp().item():.1f}", flush=True)


def export(model, ids, pictures, file):
    model.eval()
    names = ["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"]
    torch.onnx.export(
        model, (ids[:2], pictures[:2], (ids[:2] != 0).long()), str(file), dynamo=False, opset_version=14,
        input_names=["input_ids", "pixel_values", "attention_mask"], output_names=names,
        dynamic_axes={
            "input_ids": {0: "text_batch_size", 1: "sequence_length"},
            "attention_mask": {0: "text_batch_size", 1: "sequence_length"},
            "pixel_values": {0: "image_batch_size", 1: "num_channels", 2: "height", 3: "width"},
            "text_embeds": {0: "text_batch_size"},
            "image_embeds": {0: "image_batch_size"},
        })
    onnx.checker.check_model(str(file))


def held_out_pairs(folder, rng):
    pairs, pictures = [], []
    for index, (colour, shape, place) in enumerate(HELD_OUT):
        picture = Image.fromarray(draw(colour, shape, place, 96, rng))
        name = f"pair-{index}.png"
        picture.save(folder / name, optimize=True)
        pictures.append(np.asarray(picture.resize((SIDE, SIDE), Image.BICUBIC)))
        pairs.append({"picture": name, "sentence": f"a photo of a {colour} {shape} {PLACE_WORDS[place][0]}"})
    return pairs, pixels(pictures)


def evaluate(model, tokenizer, file, pairs, pictures, every):
    ids = tokenizer([pair["sentence"] for pair in pairs]).numpy()
    feed = {"input_ids": ids, "attention_mask": (ids != 0).astype(np.int64), "pixel_values": pictures.numpy()}
    text, image = onnxruntime.InferenceSession(str(file)).run(["text_embeds", "image_embeds"], feed)
    cosines = image @ text.T
    print("matched", np.diag(cosines).round(3))
    right = np.arange(len(pairs))
    print("image to text", (cosines.argmax(1) == right).sum(), "text to image", (cosines.argmax(0) == right).sum())
    every_ids = tokenizer([f"a photo of a {c} {s} {PLACE_WORDS[p][0]}" for c, s, p in every])
    with torch.no_grad():
        every_text = model(every_ids, pictures, (every_ids != 0).long())[2].numpy()
    found = [every[index] for index in (image @ every_text.T).argmax(1)]
    print("among all sentences:", sum(a == b for a, b in zip(found, HELD_OUT)), "of 8", found)
    for pair, sentence_vector, picture_vector in zip(pairs, text, image):
        pair["text_vector"] = [round(float(value), 5) for value in sentence_vector]
        pair["image_vector"] = [round(float(value), 5) for value in picture_vector]


def main(folder):
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED)
    every = [(colour, shape, place) for colour in COLOURS for shape in SHAPES for place in PLACES]
    tokenizer = SimpleTokenizer()
    words = " ".join(TEMPLATES + sum(SHAPES.values(), []) + sum(PLACE_WORDS.values(), []) + list(COLOURS))
    used = set(tokenizer.encode(words.replace("{", " ").replace("}", " "))) | {0, 49406, 49407}
    model = FixtureClip(used)
    train(model, tokenizer, [combination for combination in every if combination not in HELD_OUT], rng)

    folder.mkdir(parents=True, exist_ok=True)
    pairs, pictures = held_out_pairs(folder, rng)
    export(model, tokenizer([pair["sentence"] for pair in pairs]), pictures, folder / "model.onnx")
    evaluate(model, tokenizer, folder / "model.onnx", pairs, pictures, every)
    (folder / "pairs.json").write_text("[\n" + ",\n".join(json.dumps(pair) for pair in pairs) + "\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
