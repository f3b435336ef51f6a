"""Figures as SVG and PNG files. `figures` describes them in plain values; `canvas` draws them with matplotlib.

matplotlib is an extra (`pip install 'fairbank[plots]'`) and is imported only while a figure is drawn.
"""
