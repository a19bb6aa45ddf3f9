def compress_page(result): return "<html>"
