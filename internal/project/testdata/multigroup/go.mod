module example.com/world/v2

go 1.26.0
