#!/usr/bin/env python3
"""Writes CLIP graphs of the published sizes with random weights, for speed and memory only. Never committed.

    python3 models/random_clip.py FOLDER

FOLDER/tinyclip-vit-8m-16/model.onnx has both towers in one file; FOLDER/clip-vit-b-32/ has vision_model.onnx and
text_model.onnx. Names of inputs and outputs, dynamic axes and masks (Where, Expand) are those of Hugging Face's
exporter, which made the published files.

Needs torch 2.15.0, transformers 4.49.0, onnx 1.23.2. About 0.7 GB of disk.
"""

import sys
from pathlib import Path

import torch
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

TEXT_AXES = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "sequence"}}
IMAGE_AXES = {"pixel_values": {0: "batch", 1: "channels", 2: "height", 3: "width"}}


def model_of(vision, text):
    config = CLIPConfig.from_text_vision_configs(
        text_config=CLIPTextConfig(projection_dim=512, eos_token_id=2, **text),
        vision_config=CLIPVisionConfig(image_size=224, projection_dim=512, **vision), projection_dim=512)
    config._attn_implementation = "eager"
    torch.manual_seed(1)
    return CLIPModel(config).eval()


class Both(torch.nn.Module):
    def __init__(self, clip):
        super().__init__()
        self.clip = clip

    def forward(self, input_ids, pixel_values, attention_mask):
        out = self.clip(input_ids=input_ids, pixel_values=pixel_values, attention_mask=attention_mask)
        return out.logits_per_image, out.logits_per_text, out.text_embeds, out.image_embeds


class ImageOnly(torch.nn.Module):
    def __init__(self, clip):
        super().__init__()
        self.vision_model, self.projection = clip.vision_model, clip.visual_projection

    def forward(self, pixel_values):
        return self.projection(self.vision_model(pixel_values)[1])


class TextOnly(torch.nn.Module):
    def __init__(self, clip):
        super().__init__()
        self.text_model, self.projection = clip.text_model, clip.text_projection

    def forward(self, input_ids):
        return self.projection(self.text_model(input_ids)[1])


def export(module, arguments, file, inputs, outputs, axes):
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(module.eval(), arguments, str(file), dynamo=False, opset_version=14, input_names=inputs,
                      output_names=outputs, dynamic_axes={**axes, **{name: {0: "batch"} for name in outputs}})
    print(file, file.stat().st_size)


def main(folder):
    ids = torch.randint(1, 49000, (2, 77))
    pixels = torch.randn(2, 3, 224, 224)
    narrow = dict(hidden_size=256, intermediate_size=1024, num_attention_heads=4)
    tiny = model_of(dict(num_hidden_layers=10, patch_size=16, **narrow), dict(num_hidden_layers=3, **narrow))
    export(Both(tiny), (ids, pixels, torch.ones_like(ids)), folder / "tinyclip-vit-8m-16/model.onnx",
           ["input_ids", "pixel_values", "attention_mask"],
           ["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"], {**TEXT_AXES, **IMAGE_AXES})
    large = model_of(dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, patch_size=32),
                     dict(hidden_size=512, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=8))
    export(ImageOnly(large), (pixels,), folder / "clip-vit-b-32/vision_model.onnx", ["pixel_values"], ["image_embeds"], IMAGE_AXES)
    export(TextOnly(large), (ids,), folder / "clip-vit-b-32/text_model.onnx", ["input_ids"], ["text_embeds"],
           {"input_ids": TEXT_AXES["input_ids"]})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
