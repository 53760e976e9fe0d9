// Makes Node load its own fetch with its own dispatcher before a test imports the package undici,
// which would otherwise become the global dispatcher.
new Request('http://localhost')
